#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Holds what the API tests asked and got against the reference: check-openapi.py OPENAPI TEST...

Runs each test program with CPUCLASS_RECORD set, then checks every recorded answer: its operation, status and media type must be in the
reference, and its body must fit the schema there. The bodies of accepted requests must fit too. Every operation must have been tried with success.
Skips (77) where Debian's python3-yaml or python3-jsonschema is not installed."""

import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
    import yaml
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)


def routes(document):
    for path, item in document["paths"].items():
        pattern = re.compile("^" + re.sub(r"\\\{[a-z]+\\\}", "[^/]+", re.escape(path)) + "$")
        for method, operation in item.items():
            yield method.upper(), path, pattern, operation


def resolve(document, node):
    while "$ref" in node:
        at = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            at = at[part]
        node = at
    return node


def problems(document, schema, value):
    # the schemas refer to "#/components/...": give the root of the reference to them
    root = {"$ref": "#/schema", "schema": schema, "components": document["components"]}
    for e in jsonschema.Draft202012Validator(root).iter_errors(value):
        # the branch of a oneOf that came nearest says more than "none fits"
        worst = jsonschema.exceptions.best_match([e])
        yield f"{'/'.join(map(str, worst.absolute_path))}: {worst.message[:300]}"


def check(document, table, line, tried):
    method = "GET" if line["method"] == "HEAD" else line["method"]
    path = line["target"].split("?")[0]
    found = [r for r in table if r[0] == method and r[2].match(path)]
    if not found:
        if line["status"] not in (204, 400, 403, 404, 405):
            yield f"{line['status']} from what is not in the reference"
        return
    _, template, _, operation = min(found, key=lambda r: r[1].count("{"))
    name = f"{method} {template}"
    status = str(line["status"])
    if status in ("400", "500", "503") and status not in operation["responses"]:
        status = "default"
    if status not in operation["responses"]:
        yield f"status {status} is not in the reference of {name}"
        return
    if line["status"] < 300 and line["method"] != "HEAD":
        tried.add(name)
    response = resolve(document, operation["responses"][status])
    content = response.get("content", {})
    if line["method"] == "HEAD" or (not content and not line["type"]):
        return
    if line["type"] not in content:
        yield f"media type {line['type']!r} of {name} {status} is not in the reference"
        return
    if "answer" in line:
        yield from problems(document, content[line["type"]]["schema"], line["answer"])
    if line["status"] < 300 and line.get("request", "").strip() and "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        for p in problems(document, schema, json.loads(line["request"])):
            yield f"request: {p}"


def check_examples(document, table):
    for method, template, _, operation in table:
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            for p in problems(document, content["schema"], content["example"]):
                yield f"example of {method} {template}: {p}"


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        document = yaml.safe_load(f)
    table = list(routes(document))
    tried, wrong, n = set(), [], 0
    for program in sys.argv[2:]:
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as f:
            # it is the test itself that says whether it succeeds
            subprocess.run([program], env={**os.environ, "CPUCLASS_RECORD": f.name}, capture_output=True, check=False)
            for text in f:
                line = json.loads(text)
                n += 1
                for p in check(document, table, line, tried):
                    wrong.append(f"{line['method']} {line['target'][:100]} -> {line['status']}: {p}")
    wrong += check_examples(document, table)
    for method, template, _, _ in table:
        if f"{method} {template}" not in tried and template != "/v1/events":
            wrong.append(f"{method} {template} was never tried with success")
    for w in sorted(set(wrong)):
        print(w)
    print(f"{n} answers checked, {len(set(wrong))} wrong")
    return 1 if wrong or n == 0 else 0


sys.exit(main())
