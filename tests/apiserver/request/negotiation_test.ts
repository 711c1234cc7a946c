import assert from "node:assert/strict";
import { test } from "node:test";
import { negotiate } from "../../../apiserver/request/negotiation.ts";
import { StatusError } from "../../../apiserver/status.ts";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";

test("negotiate chooses the first supported representation", () => {
  assert.equal(negotiate(`${TABLE},application/json`, true).as, "Table");
  assert.equal(negotiate(undefined, true).media, "json");
  assert.equal(negotiate("*/*", false).media, "json");
  assert.equal(negotiate("application/yaml", false).media, "yaml");
  assert.equal(
    negotiate("application/vnd.kubernetes.protobuf,application/json", false)
      .media,
    "json",
  );
});

test("negotiate respects quality values", () => {
  const header = `application/json;q=0.5,${TABLE};q=0.9`;
  assert.equal(negotiate(header, true).as, "Table");
});

test("negotiate falls back if a conversion is unknown", () => {
  const header =
    "application/json;as=Other;g=meta.k8s.io;v=v1,application/json";
  assert.equal(negotiate(header, true).as, undefined);
});

test("negotiate rejects application/* only for built-in kinds", () => {
  assert.throws(() => negotiate("application/*", false), StatusError);
  assert.equal(negotiate("application/*", true).media, "json");
});

test("negotiate rejects unsupported representations", () => {
  for (const custom of [true, false]) {
    for (
      const header of [
        "text/html",
        "application/vnd.kubernetes.protobuf",
        "application/json;charset=latin1",
      ]
    ) {
      assert.throws(
        () => negotiate(header, custom),
        (error: StatusError) => error.status.code === 406,
      );
    }
  }
});
