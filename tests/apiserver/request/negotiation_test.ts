import assert from "node:assert/strict";
import { test } from "node:test";
import { negotiate } from "../../../apiserver/request/negotiation.ts";
import { StatusError } from "../../../apiserver/status.ts";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";

test("negotiate chooses the first form that it can give", () => {
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

test("negotiate heeds quality", () => {
  const header = `application/json;q=0.5,${TABLE};q=0.9`;
  assert.equal(negotiate(header, true).as, "Table");
});

test("negotiate falls back where a transformation is not known", () => {
  const header =
    "application/json;as=Other;g=meta.k8s.io;v=v1,application/json";
  assert.equal(negotiate(header, true).as, undefined);
});

test("negotiate refuses application/* for built-in kinds only", () => {
  assert.throws(() => negotiate("application/*", false), StatusError);
  assert.equal(negotiate("application/*", true).media, "json");
});

test("negotiate refuses what it cannot give", () => {
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
