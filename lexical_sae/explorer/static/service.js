/** The HTTP service behind a served page. A page in one file has none, and asks nothing of anybody. */

/** @typedef {{detail?: string, title?: string}} Problem */

export class ServiceError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const TOKEN = "lexical-sae token";

export class Service {
  /** @param {string} model Name of the model that is asked. */
  constructor(model = "") {
    this.model = model;
  }

  /**
   * @param {string} path
   * @param {RequestInit} [options]
   * @returns {Promise<any>}
   */
  async ask(path, options = {}) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const answer = await fetch(path, { ...options, headers });
    if (answer.ok) return answer.json();
    const problem = /** @type {Problem} */ (await answer.json().catch(() => ({})));
    throw new ServiceError(answer.status, problem.detail ?? problem.title ?? `the service answered ${answer.status}`);
  }

  /** @param {string} token */
  unlock(token) {
    sessionStorage.setItem(TOKEN, token);
  }

  /**
   * @param {string} path
   * @param {Record<string, unknown>} body
   * @param {AbortSignal} [signal]
   */
  post(path, body, signal) {
    const headers = { "Content-Type": "application/json" };
    return this.ask(path, { method: "POST", headers, body: JSON.stringify({ model: this.model, ...body }), ...(signal ? { signal } : {}) });
  }

  models() {
    return this.ask("/v1/models");
  }

  corpus() {
    return this.ask(`/v1/corpus/${encodeURIComponent(this.model)}`);
  }

  /**
   * A text as its words, after one encoder pass: everything else is computed here.
   * @param {string} text
   * @param {AbortSignal} [signal]
   */
  async codes(text, signal) {
    return (await this.post("/v1/codes", { texts: [text] }, signal)).codes;
  }

  /**
   * The library's own explanation, with the causes of shifts.
   * @param {string} text
   * @param {AbortSignal} [signal]
   */
  async explain(text, signal) {
    return (await this.post("/v1/explain", { texts: [text], causes: true }, signal)).explanations[0];
  }
}
