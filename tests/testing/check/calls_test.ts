import assert from "node:assert/strict";
import { test } from "node:test";
import {
  callDifferences,
  callsOf,
  comparableCall,
} from "../../../dev/testing/check/calls.ts";
import type { TracedNote } from "../../../dev/testing/check/run_record.ts";
import { event, note, write } from "./check_case.ts";

/** Request outside the cluster, with a JSON body. */
function call(text: string, body?: unknown, step = 0): TracedNote {
  const json = body === undefined ? undefined : JSON.stringify(body);
  const shown = json === undefined ? text : `${text} ${json}`;
  return { ...note("external", shown, step), body: json };
}

const trace = (...notes: readonly TracedNote[]) => ({ trace: notes });
const URL_A = "http://a.test/items";

test("callsOf gives the requests that may change something", () => {
  const found = callsOf(trace(
    ...["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
      .map((method) => call(`${method} ${URL_A}`)),
    note("step", `POST ${URL_A}`),
  ));
  assert.deepEqual(found.map(({ text }) => text.split(" ")[0]), [
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
  ]);
});

test("callsOf names the objects of UIDs, which differ between runs", () => {
  const uidOf = (n: number) => `0000000${n}-0000-4000-8000-000000000000`;
  const object = (uid: string) => event("ADDED Gadget a", { uid });
  const texts = (first: number, second: number) =>
    callsOf({
      trace: [
        object(uidOf(first)),
        object(uidOf(first)),
        call(`PUT ${URL_A}/${uidOf(first)}`, { id: uidOf(first) }),
        call(`PUT ${URL_A}/${uidOf(first).slice(0, 8)}`, { name: "dddddddd" }),
        write("patch Gadget a", { uid: "" }),
        object(uidOf(second)),
        call(`DELETE ${URL_A}/${uidOf(second)}`),
        call(`DELETE ${URL_A}/${uidOf(9)}`),
      ],
    }).map(({ text }) => text);
  assert.deepEqual(texts(1, 2), texts(3, 4));
  assert.deepEqual(texts(1, 2), [
    `PUT ${URL_A}/<uid:Gadget/default/a> {"id":"<uid:Gadget/default/a>"}`,
    `PUT ${URL_A}/<uid:Gadget/default/a…> {"name":"dddddddd"}`,
    `DELETE ${URL_A}/<uid:Gadget/default/a:2>`,
    `DELETE ${URL_A}/${uidOf(9)}`,
  ]);
});

test("callDifferences compares requests of one step and place, in order", () => {
  const post = (id: string, step = 0, url = URL_A) =>
    call(`POST ${url}`, { id, size: 1 }, step);
  const places = (...pair: Parameters<typeof callDifferences>) =>
    callDifferences(...pair).map(({ object, path }) => `${object} ${path}`);
  const changed = "POST:http://a.test .body.id";
  assert.deepEqual(places(trace(post("1")), trace(post("2"))), [changed]);
  assert.deepEqual(places(trace(post("1")), trace(post("1"))), []);
  assert.deepEqual(
    places(trace(post("1"), post("2")), trace(post("1"), post("3"))),
    [changed],
  );
  const both = trace(post("1"), post("2"));
  assert.deepEqual(places(both, both), []);
  assert.deepEqual(places(trace(post("1", 1)), trace(post("2"))), []);
  assert.deepEqual(
    places(trace(post("1", 0, `${URL_A}/b`)), trace(post("2"))),
    [],
  );
});

test("comparableCall hides the fields of a body that differ with the seed", () => {
  const one = call(`POST ${URL_A}`, { id: "x", tags: [{ id: "y" }] });
  const of = (...masked: readonly string[]) =>
    comparableCall(one, new Set(masked));
  assert.equal(of(), one.text);
  const spaced = { ...note("external", `POST ${URL_A} { }`), body: "{ }" };
  assert.equal(comparableCall(spaced, new Set()), spaced.text);
  assert.equal(of("POST:http://b.test .body.id"), one.text);
  assert.equal(
    of("POST:http://a.test .body.id"),
    `POST ${URL_A} {"id":"<differs>","tags":[{"id":"y"}]}`,
  );
  assert.equal(
    of("POST:http://a.test .body.tags[].id"),
    `POST ${URL_A} {"id":"x","tags":[{"id":"<differs>"}]}`,
  );
  assert.equal(
    comparableCall(
      { ...note("external", "POST no URL"), body: "text" },
      new Set(["POST:no .body"]),
    ),
    "POST no <differs>",
  );
});

test("callDifferences names the parts of a URL that differ with the seed", () => {
  const places = (a: string, b: string, body?: unknown, other?: unknown) =>
    callDifferences(trace(call(a, body)), trace(call(b, other)))
      .map(({ object, path }) => `${object} ${path}`);
  const of = "PUT:http://a.test .url";
  assert.deepEqual(
    places(`PUT ${URL_A}/x7f3/keys`, `PUT ${URL_A}/k9d2/keys`),
    [`${of}/items/*`],
  );
  assert.deepEqual(
    places(
      `PUT ${URL_A}/x7f3/keys/1?at=a&b=c`,
      `PUT ${URL_A}/k9d2/keys/2?at=b&b=c`,
    ),
    [`${of}/items/*`, `${of}/items/*/keys/*`, `${of}/items/*/keys/*?at=*`],
  );
  assert.deepEqual(
    places(`PUT ${URL_A}/x7f3`, `PUT ${URL_A}/k9d2`, { a: 1 }, { a: 2 }),
    [`${of}/items/*`, "PUT:http://a.test .body.a"],
  );
  for (
    const other of [
      `PUT ${URL_A}/x7f3/k`,
      `PUT ${URL_A}/x7f3?a=1`,
      `POST ${URL_A}/x7f3`,
      "PUT http://b.test/items/x7f3",
      "PUT items",
    ]
  ) assert.deepEqual(places(`PUT ${URL_A}/k9d2`, other), [], other);
});

test("comparableCall hides the parts of a URL that differ with the seed", () => {
  const masked = new Set([
    "PUT:http://a.test .url/items/*",
    "PUT:http://a.test .url/items/*/keys?at=*",
  ]);
  const of = (text: string, body?: unknown) =>
    comparableCall(call(text, body), masked);
  assert.equal(
    of(`PUT ${URL_A}/x7f3/keys?at=1`, { a: 1 }),
    `PUT ${URL_A}/<differs>/keys?at=<differs> {"a":1}`,
  );
  assert.equal(of(`PUT ${URL_A}/x7f3`), `PUT ${URL_A}/<differs>`);
  for (
    const other of [
      `POST ${URL_A}/x7f3`,
      "PUT http://a.test/users/x7f3",
      "PUT http://b.test/items/x7f3",
      "PUT items",
    ]
  ) assert.equal(of(other), other);
});
