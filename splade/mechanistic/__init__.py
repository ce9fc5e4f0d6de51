"""Attribution: from a circuit state to the words behind a decision."""
