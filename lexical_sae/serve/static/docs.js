// The page of endpoints, from openapi.json. Everything that a service says becomes text, never markup.

/** An element with properties and children. */
function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

const api = await (await fetch("../openapi.json")).json();
const token = /** @type {HTMLInputElement} */ (document.getElementById("token"));
document.getElementById("about").textContent = `${api.info.summary} ${api.info.description}`;
document.getElementById("access").hidden = api.security.length === 0;

/** What a reference in the document stands for. */
function resolved(schema) {
  return schema?.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema;
}

/** The type of a field in a few words. Example: "list of text, or null" */
function typeOf(schema) {
  const found = resolved(schema) ?? {};
  if (found.const !== undefined) return JSON.stringify(found.const);
  if (found.enum) return found.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (found.anyOf) return found.anyOf.map(typeOf).join(", or ");
  if (found.type === "array") return found.prefixItems ? "list" : `list of ${typeOf(found.items)}`;
  if (found.type === "object") return found.title ?? "object";
  return { string: "text", null: "null", boolean: "true | false" }[found.type] ?? found.type ?? "anything";
}

/** A table of the fields of an object. */
function fieldsOf(schema) {
  const found = resolved(schema);
  if (!found?.properties) return "";
  const needed = new Set(found.required ?? []);
  const rows = Object.entries(found.properties).map(([name, field]) => {
    const byDefault = field.default === undefined || needed.has(name) ? "" : `; by default ${JSON.stringify(field.default)}`;
    return make("tr", {}, make("td", {}, make("code", { textContent: name })),
      make("td", { textContent: typeOf(field) + byDefault }),
      make("td", { textContent: field.description ?? resolved(field)?.description ?? "" }));
  });
  const head = make("tr", {}, ...["field", "type", "meaning"].map((textContent) => make("th", { textContent, scope: "col" })));
  return make("div", { className: "fields" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

/** The address of an operation with the examples of its parameters. */
function addressOf(path, operation) {
  const query = new URLSearchParams();
  let filled = path;
  for (const parameter of operation.parameters) {
    if (parameter.in === "path") filled = filled.replace(`{${parameter.name}}`, encodeURIComponent(parameter.example));
    else if (parameter.example !== undefined) query.set(parameter.name, parameter.example);
  }
  return filled + (query.size ? `?${query}` : "");
}

/** Send a request and show what comes back. */
async function send(method, address, body, answer) {
  const headers = { ...(body === null ? {} : { "Content-Type": "application/json" }),
    ...(token.value ? { Authorization: `Bearer ${token.value}` } : {}) };
  answer.hidden = false;
  answer.textContent = "…";
  try {
    const response = await fetch(address, { method, headers, body });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get("content-type") ?? "");
    answer.textContent = `${response.status}\n${isJson && text ? JSON.stringify(JSON.parse(text), null, 2) : text}`;
  } catch (error) {
    answer.textContent = `No answer: ${error.message}`;
  }
}

for (const [path, methods] of Object.entries(api.paths)) {
  for (const [verb, operation] of Object.entries(methods)) {
    const method = verb.toUpperCase();
    const title = `${method} ${path}`;
    const request = operation.requestBody?.content["application/json"];
    const success = operation.responses["200"].content;
    const address = make("input", { value: addressOf(path, operation), size: 60, spellcheck: false });
    const body = make("textarea", { rows: 6, spellcheck: false, value: request ? JSON.stringify(request.example, null, 2) : "" });
    const answer = make("pre", { hidden: true, tabIndex: 0 });
    answer.setAttribute("aria-live", "polite");
    answer.setAttribute("aria-label", `Answer to ${title}`);
    const button = make("button", { type: "button", textContent: "Send" });
    button.addEventListener("click", () => send(method, address.value, request ? body.value : null, answer));
    const refusals = Object.entries(operation.responses).filter(([status]) => status !== "200")
      .map(([status, said]) => make("tr", {}, make("td", {}, make("code", { textContent: status })), make("td", { textContent: said.description })));
    const query = operation.parameters.filter((parameter) => parameter.in === "query");
    const asked = request ? fieldsOf(request.schema)
      : query.length ? fieldsOf({ properties: Object.fromEntries(query.map((p) => [p.name, { ...p.schema, description: p.description }])) }) : "";
    const section = make("section", { id: operation.operationId }, make("h2", {}, make("code", { textContent: title })),
      make("p", { textContent: operation.summary }));
    if (asked) section.append(make("details", {}, make("summary", { textContent: "What to send" }), asked));
    const shape = Object.values(success)[0].schema;
    if (shape) section.append(make("details", {}, make("summary", { textContent: "What comes back" }), fieldsOf(shape)));
    section.append(make("details", {}, make("summary", { textContent: "Refusals, as application/problem+json" }),
      make("table", {}, make("tbody", {}, ...refusals))));
    section.append(make("p", {}, make("label", {}, "Address ", address)));
    if (request) section.append(make("label", {}, "Body", body));
    section.append(make("p", {}, button), answer);
    document.getElementById("operations").append(section);
    document.getElementById("index").append(make("li", {},
      make("a", { href: `#${operation.operationId}` }, make("code", { textContent: title }))));
  }
}
