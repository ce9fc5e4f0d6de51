"""The endpoints: a body becomes a question, a lane's answers become a body."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

import lexical_sae
from lexical_sae.models.lexical_sae import CLASSIFY, TAG
from lexical_sae.serve import answers, metrics, requests
from lexical_sae.serve.decision_log import Decision
from lexical_sae.serve.edits import Edit
from lexical_sae.serve.problems import Problem
from lexical_sae.serve.questions import Asking, Codes, Explain, Flip, Lexicon, Predict, Tag, WhatIf
from lexical_sae.serve.service import Post, Service, answer_json

Endpoint = Callable[[Service, Request], Awaitable[Response]]
Schema = TypeVar("Schema", bound=requests.Asked)
EXAMPLE = "a warm, funny film that never drags"


@dataclass(frozen=True)
class Operation:
    """An endpoint, and what the OpenAPI document says of it."""

    method: str
    path: str
    name: str
    summary: str
    endpoint: Endpoint
    answer: type[answers.Said] | None
    """None where the answer is no JSON object of ours."""
    request: type[requests.Asked] | None = None
    query: type[requests.LexiconQuery] | None = None
    example: dict[str, Any] = field(default_factory=dict)
    media_type: str = "application/json"

    def route(self, service: Service) -> Route:
        """The route, with its pattern for logs and metrics."""

        async def respond(request: Request) -> Response:
            request.scope["route_name"] = self.path
            return await self.endpoint(service, request)

        return Route(self.path, respond, methods=[self.method], name=self.name)


async def explain(service: Service, request: Request) -> Response:
    asked = await _parsed(service, request, requests.ExplainRequest)
    return await _explained(service, request, service.post(asked.model), asked.texts, asking_of(asked))


async def kserve_explain(service: Service, request: Request) -> Response:
    post = service.post(request.path_params["model"])
    asked = await _parsed(service, request, requests.KServeExplain)
    return await _explained(service, request, post, asked.instances, asking_of(asked.parameters))


async def _explained(service: Service, request: Request, post: Post, texts: Sequence[str], asking: Asking) -> Response:
    post.require(CLASSIFY)
    found = await service.ask(post.quick, Explain(asking), texts)
    decisions = [Decision(text, why.label, why.probability) for text, why in zip(texts, found, strict=True)]
    await service.write_down(post, _id(request), "explain", decisions)
    return _answer(request, post, explanations=[why.json for why in found], rest=[why.rest for why in found])


async def kserve_predict(service: Service, request: Request) -> Response:
    post = service.post(request.path_params["model"])
    asked = await _parsed(service, request, requests.KServePredict)
    post.require(CLASSIFY)
    found = await service.ask(post.quick, Predict(asked.parameters.abstain), asked.instances)
    decisions = [
        Decision(text, made.label, made.probability) for text, made in zip(asked.instances, found, strict=True)
    ]
    await service.write_down(post, _id(request), "predict", decisions)
    return _answer(request, post, predictions=[made.json for made in found])


async def what_if(service: Service, request: Request) -> Response:
    asked = await _parsed(service, request, requests.WhatIfRequest)
    post = service.post(asked.model)
    post.require(CLASSIFY)
    if not (asked.suppress or asked.set):
        raise Problem(422, "Name at least one word under 'suppress', or a weight under 'set'.")
    question = WhatIf(Edit.of(tuple(asked.suppress), asked.set), asking_of(asked))
    found = await service.ask(post.quick, question, asked.texts)
    edit = {key: json.dumps(value) for key, value in json.loads(found[0].edit).items()}
    return _answer(
        request,
        post,
        before=[changed.before.json for changed in found],
        after=[changed.after.json for changed in found],
        rest_before=[changed.before.rest for changed in found],
        rest_after=[changed.after.rest for changed in found],
        **edit,
    )


async def flip(service: Service, request: Request) -> Response:
    asked = await _parsed(service, request, requests.FlipRequest)
    post = service.post(asked.model)
    post.require(CLASSIFY)
    question = Flip(asked.to, asked.seconds, asked.all_tokens, asked.merge_inflections)
    (reasons,) = await service.ask(post.slow, question, [asked.text])
    return _answer(request, post, reasons=reasons)


async def codes(service: Service, request: Request) -> Response:
    asked = await _parsed(service, request, requests.CodesRequest)
    post = service.post(asked.model)
    post.require(CLASSIFY)
    (found,) = await service.ask(post.quick, Codes(), [tuple(asked.texts)])
    return _answer(request, post, codes=found)


async def tag(service: Service, request: Request) -> Response:
    asked = await _parsed(service, request, requests.TagRequest)
    post = service.post(asked.model)
    post.require(TAG)
    texts = [text if isinstance(text, str) else tuple(text) for text in asked.texts]
    found = await service.ask(post.quick, Tag(), texts)
    written = [text if isinstance(text, str) else " ".join(text) for text in texts]
    decisions = [Decision(text, made.label, None) for text, made in zip(written, found, strict=True)]
    await service.write_down(post, _id(request), "tag", decisions)
    return _answer(request, post, sentences=[made.json for made in found])


async def lexicon(service: Service, request: Request) -> Response:
    service.require_open()
    asked = requests.parsed_query(dict(request.query_params))
    post = service.post(asked.model)
    post.require(CLASSIFY)
    question = Lexicon(asked.label, asked.search, asked.offset, asked.top)
    (page,) = await service.ask(post.slow, question, [None])
    return _answer(request, post, **{key: json.dumps(value) for key, value in json.loads(page).items()})


async def corpus(service: Service, request: Request) -> Response:
    post = service.post(request.path_params["model"])
    if post.corpus is None:
        raise Problem(404, "There are no texts: start the service with --data texts.csv.")
    state = post.corpus.state()
    if state["state"] == "failed":
        raise Problem(503, f"The texts cannot be shown: {state['detail']}.")
    if state["state"] != "ready":
        raise Problem(503, f"The texts are being read ({state['done']:.0%}); ask again.", {"Retry-After": "2"})
    tag = f'"{post.corpus.etag}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "X-Model-SHA256": post.served.sha256}
    headers["Vary"] = "Accept-Encoding"
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        content = await asyncio.to_thread(post.corpus.unpacked)
        return Response(content, headers=headers, media_type="application/json")
    headers["Content-Encoding"] = "gzip"
    return FileResponse(post.corpus.payload, headers=headers, media_type="application/json")


async def models(service: Service, request: Request) -> Response:
    limits = {
        name: value for name, value in asdict(service.limits).items() if name in answers.StatedLimits.model_fields
    }
    return _json(
        {
            "models": [post.described() for post in service.posts.values()],
            "limits": limits,
            "version": lexical_sae.__version__,
            "request_id": _id(request),
        }
    )


async def model(service: Service, request: Request) -> Response:
    post = service.post(request.path_params["model"])
    return _json({**post.described(), "request_id": _id(request)})


async def health(service: Service, request: Request) -> Response:
    del service, request
    return _json({"status": "ok"})


async def ready(service: Service, request: Request) -> Response:
    del request
    service.require_open()
    return _json({"ready": True})


async def measured(service: Service, request: Request) -> Response:
    del request
    return Response(service.metrics.written(), headers={"Content-Type": metrics.MEDIA_TYPE})


def asking_of(asked: requests.HowToExplain) -> Asking:
    """How to explain, as a question that compares by value."""
    return Asking(**{name: getattr(asked, name) for name in requests.HowToExplain.model_fields})


OPERATIONS = (
    Operation(
        "POST",
        "/v1/explain",
        "explain",
        "Why texts get their labels: every word with its contribution, which sum to the decision.",
        explain,
        answers.ExplainAnswer,
        requests.ExplainRequest,
        example={"texts": [EXAMPLE], "top": 5},
    ),
    Operation(
        "POST",
        "/v1/what-if",
        "what_if",
        "What texts would get, were some words suppressed or weighted otherwise. The model does not change.",
        what_if,
        answers.WhatIfAnswer,
        requests.WhatIfRequest,
        example={"texts": [EXAMPLE], "suppress": ["film"], "top": 5},
    ),
    Operation(
        "POST",
        "/v1/flip",
        "flip",
        "The fewest words whose removal changes the decision, and the fewest that are enough for it, with proof.",
        flip,
        answers.FlipAnswer,
        requests.FlipRequest,
        example={"text": EXAMPLE},
    ),
    Operation(
        "POST",
        "/v1/codes",
        "codes",
        "Texts as their words and the part of the table that decides on them, as the explorer reads them.",
        codes,
        answers.CodesAnswer,
        requests.CodesRequest,
        example={"texts": [EXAMPLE]},
    ),
    Operation(
        "POST",
        "/v1/tag",
        "tag",
        "The tags of the words of texts, of a model that tags.",
        tag,
        answers.TagAnswer,
        requests.TagRequest,
        example={"texts": ["Acme moved from Oslo to Berlin"]},
    ),
    Operation(
        "GET",
        "/v1/lexicon",
        "lexicon",
        "The words of a model with their weights, page by page, for models whose words are literal.",
        lexicon,
        answers.LexiconAnswer,
        query=requests.LexiconQuery,
        example={"search": "fun", "top": 10},
    ),
    Operation("GET", "/v1/models", "models", "The models of this service.", models, answers.ModelsAnswer),
    Operation(
        "POST",
        "/v1/models/{model}:predict",
        "predict",
        "The labels of texts (KServe's protocol).",
        kserve_predict,
        answers.PredictAnswer,
        requests.KServePredict,
        example={"instances": [EXAMPLE]},
    ),
    Operation(
        "POST",
        "/v1/models/{model}:explain",
        "kserve_explain",
        "Why texts get their labels (KServe's protocol).",
        kserve_explain,
        answers.ExplainAnswer,
        requests.KServeExplain,
        example={"instances": [EXAMPLE], "parameters": {"top": 5}},
    ),
    Operation("GET", "/v1/models/{model}", "model", "One model.", model, answers.DescribedModel),
    Operation(
        "GET",
        "/v1/corpus/{model}",
        "corpus",
        "The texts given with --data, as the explorer reads them.",
        corpus,
        None,
    ),
    Operation("GET", "/health", "health", "Whether the process lives.", health, answers.Health),
    Operation("GET", "/ready", "ready", "Whether questions are answered.", ready, answers.Ready),
    Operation(
        "GET", "/metrics", "metrics", "Counts and times for Prometheus.", measured, None, media_type="text/plain"
    ),
)


async def _parsed(service: Service, request: Request, schema: type[Schema]) -> Schema:
    service.require_open()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, f"The body must be application/json, not {kind or 'of no type'}.")
    return requests.parsed(schema, await _body(service, request), service.limits)


async def _body(service: Service, request: Request) -> bytes:
    """The body, within its limits of size and time."""
    most, seconds = service.limits.body_bytes, service.limits.body_seconds
    too_large = Problem(413, f"The body is larger than {most:,} bytes; send fewer texts at once.")
    declared = request.headers.get("content-length", "0")
    # A number of any length: Python refuses to read one of thousands of digits.
    if len(declared) > len(str(most)) + 1 or int(declared) > most:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise too_large
                parts.append(part)
    except TimeoutError as error:
        raise Problem(408, f"The body did not come within {seconds:g} seconds.", {"Connection": "close"}) from error
    except ClientDisconnect as error:
        raise Problem(400, "The client left before its body was there.") from error
    return b"".join(parts)


def _id(request: Request) -> str:
    return request.scope["state"]["request_id"]


def _answer(request: Request, post: Post, **parts: str | Sequence[str]) -> Response:
    content = answer_json(post, _id(request), **parts)
    return Response(content, headers={"X-Model-SHA256": post.served.sha256}, media_type="application/json")


def _json(content: Any) -> Response:
    return Response(json.dumps(content), media_type="application/json")
