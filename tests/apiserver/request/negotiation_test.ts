import assert from "node:assert/strict";
import { test } from "node:test";
import { negotiate } from "../../../dev/apiserver/request/negotiation.ts";
import { StatusError } from "../../../dev/apiserver/status.ts";

const CUSTOM = { custom: true };
const BUILTIN = { custom: false };
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";

test("negotiate chooses the first supported representation", () => {
  assert.equal(negotiate(`${TABLE},application/json`, CUSTOM).as, "Table");
  assert.equal(negotiate(undefined, CUSTOM).media, "json");
  assert.equal(negotiate("*/*", BUILTIN).media, "json");
  assert.equal(negotiate("application/yaml", BUILTIN).media, "yaml");
  assert.equal(
    negotiate("application/vnd.kubernetes.protobuf,application/json", CUSTOM)
      .media,
    "json",
  );
  assert.equal(
    negotiate("application/vnd.kubernetes.protobuf,application/json", BUILTIN)
      .media,
    "protobuf",
  );
});

test("negotiate respects quality values", () => {
  const header = `application/json;q=0.5,${TABLE};q=0.9`;
  assert.equal(negotiate(header, CUSTOM).as, "Table");
});

test("negotiate falls back if a conversion is unknown", () => {
  const header =
    "application/json;as=Other;g=meta.k8s.io;v=v1,application/json";
  assert.equal(negotiate(header, CUSTOM).as, undefined);
});

test("negotiate rejects application/* only for built-in kinds", () => {
  assert.throws(() => negotiate("application/*", BUILTIN), StatusError);
  assert.equal(negotiate("application/*", CUSTOM).media, "json");
});

test("negotiate rejects unsupported representations", () => {
  for (const custom of [true, false]) {
    for (
      const header of [
        "text/html",
        "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
        "application/json;charset=latin1",
      ]
    ) {
      assert.throws(
        () => negotiate(header, { custom }),
        (error: StatusError) => error.status.code === 406,
      );
    }
  }
});
