/** The beginning: data that the page holds, or a service that is asked for it. */

import { fill, h } from "./dom.js";
import { Service, ServiceError } from "./service.js";
import { Shell } from "./shell.js";
import { App, codesOf } from "./store.js";

/** @typedef {import("./store.js").Model} Model */

/**
 * @param {any} data A model of the page's own data.
 * @returns {Model}
 */
function embedded(data) {
  return { ...data, labels: data.codes.labels, codes: codesOf(data.codes) };
}

/**
 * @param {Service} service
 * @param {any} about
 * @param {(state: string) => void} told
 * @returns {Promise<Model>}
 */
async function served(service, about, told) {
  let state = about.corpus;
  while (state && state.state === "making") {
    told(`Reading ${state.texts.toLocaleString("en")} texts: ${Math.round(100 * (state.done ?? 0))}%`);
    await new Promise((resolve) => setTimeout(resolve, 500));
    state = (await service.models()).models.find((/** @type {any} */ model) => model.name === about.name)?.corpus;
  }
  const codes = state?.state === "ready" ? codesOf(await service.corpus()) : null;
  const measured = { accuracies: about.accuracies ?? [], measures: about.measures ?? [] };
  return { name: about.name, labels: about.labels, codes, about: about.about ?? "", address: about.address ?? about.name, ...measured };
}

/**
 * @param {HTMLElement} place
 * @param {Service} service
 */
async function askToken(place, service) {
  const token = h("input", { type: "password", autocomplete: "off" });
  await new Promise((resolve) => {
    const form = h("form", { onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      service.unlock(token.value);
      resolve(null);
    } }, h("label", { class: "field" }, h("span", null, "This service asks for a token"), token), h("button", { type: "submit" }, "open"));
    fill(place, form);
    token.focus();
  });
}

/**
 * @param {HTMLElement} place
 * @returns {Promise<App>}
 */
async function begun(place) {
  const held = document.getElementById("payload");
  if (held) {
    const page = JSON.parse(held.textContent ?? "");
    return new App(page.models.map(embedded), null, page.title);
  }
  const service = new Service();
  const told = (/** @type {string} */ state) => fill(place, h("p", { class: "waiting", role: "status" }, state));
  told("Loading …");
  for (;;) {
    try {
      const { models } = await service.models();
      const texts = models.filter((/** @type {any} */ model) => model.tasks.includes("classify"));
      if (!texts.length) throw new Error("This service has no model that classifies texts; see /docs for what it does.");
      const made = [];
      for (const about of texts) {
        service.model = about.name;
        made.push(await served(service, about, told));
      }
      service.model = made[0]?.name ?? "";
      const app = new App(made, service, made[0]?.name ?? "");
      app.addEventListener("model", () => {
        service.model = app.model.name;
      });
      return app;
    } catch (error) {
      if (!(error instanceof ServiceError) || error.status !== 401) throw error;
      await askToken(place, service);
    }
  }
}

const shell = document.querySelector("lx-app");
if (shell instanceof Shell) {
  try {
    const app = await begun(shell);
    app.arrive();
    addEventListener("hashchange", () => app.arrive());
    shell.show(app);
    document.documentElement.dataset["ready"] = "";
  } catch (error) {
    fill(shell, h("p", { class: "caution", role: "alert" }, error instanceof Error ? error.message : String(error)));
  }
}
