"""What has no idea of its own: devices, precision, files, downloads, progress, cost, and configurable parts."""
