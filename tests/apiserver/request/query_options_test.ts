import assert from "node:assert/strict";
import { test } from "node:test";
import {
  readDeleteOptions,
  readListOptions,
  readWriteOptions,
} from "../../../dev/apiserver/request/query_options.ts";
import { StatusError } from "../../../dev/apiserver/status.ts";

const query = (text: string) => new URLSearchParams(text);

function refusal(work: () => unknown): StatusError["status"] {
  try {
    work();
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
  return assert.fail("it was accepted");
}

test("readListOptions parses booleans as Go does", () => {
  const watches = (text: string) => readListOptions(query(text), false).watch;
  assert.deepEqual(
    ["watch", "watch=1", "watch=yes", "watch=0", "watch=False", ""].map(
      watches,
    ),
    [true, true, true, false, false, false],
  );
});

test("readListOptions rejects invalid numbers", () => {
  assert.equal(
    refusal(() => readListOptions(query("limit=many"), false)).code,
    400,
  );
  assert.equal(
    refusal(() => readListOptions(query("resourceVersion=abc"), false)).code,
    400,
  );
  assert.equal(
    refusal(() => readListOptions(query("resourceVersion=abc"), true)).code,
    500,
  );
  assert.equal(readListOptions(query("limit=-1"), false).limit, 0);
});

test("readListOptions rejects a continue token with resourceVersionMatch", () => {
  const { message } = refusal(() =>
    readListOptions(
      query("continue=x&resourceVersionMatch=Exact&resourceVersion=5"),
      false,
    )
  );
  assert.match(message ?? "", /forbidden when continue is provided/);
});

test("readWriteOptions derives the field manager from the user agent", () => {
  const headers = { "user-agent": "kubectl/v1.32 (linux)" };
  const { fieldManager } = readWriteOptions(
    { query: query(""), http: { headers } },
    "CreateOptions",
  );
  assert.equal(fieldManager, "kubectl");
});

test("readWriteOptions takes what is printable and fits of the user agent", () => {
  const managerOf = (agent: string) =>
    readWriteOptions(
      { query: query(""), http: { headers: { "user-agent": agent } } },
      "CreateOptions",
    ).fieldManager;
  assert.equal(managerOf("my\tagent/v1"), "myagent");
  assert.equal(managerOf("ä".repeat(70)), "ä".repeat(64));
});

test("readWriteOptions collects all violations", () => {
  const { details } = refusal(() =>
    readWriteOptions({
      query: query("dryRun=Some&fieldValidation=Often&force=true"),
      http: { headers: {} },
    }, "PatchOptions")
  );
  assert.deepEqual(details?.causes?.map(({ field }) => field), [
    "force",
    "dryRun",
    "fieldValidation",
  ]);
});

test("readDeleteOptions prefers the body over the query", () => {
  const options = readDeleteOptions(
    query("propagationPolicy=Orphan&dryRun=All"),
    { propagationPolicy: "Foreground" },
  );
  assert.equal(options.propagationPolicy, "Foreground");
  assert.equal(options.dryRun, true);
});

test("readDeleteOptions rejects fields of another type", () => {
  for (
    const [body, message] of [
      [
        { gracePeriodSeconds: "5" },
        "string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
      ],
      [
        { gracePeriodSeconds: 1.5 },
        "number 1.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
      ],
      [
        { dryRun: "All" },
        "string into Go struct field DeleteOptions.dryRun of type []string",
      ],
      [
        { preconditions: [] },
        "array into Go struct field DeleteOptions.preconditions of type v1.Preconditions",
      ],
    ] as const
  ) {
    const status = refusal(() => readDeleteOptions(query(""), { ...body }));
    assert.equal(status.code, 400);
    assert.equal(status.message, `json: cannot unmarshal ${message}`);
  }
});
