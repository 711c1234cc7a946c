import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { untyped } from "@coracle/operator/client";
import { defineKind } from "@coracle/operator/crd";
import {
  ConfigMap,
  Deployment,
  Lease,
  NetworkPolicy,
  RoleBinding,
  StatefulSet,
} from "@coracle/operator/kinds";
import { fc } from "../../support/property.ts";
import {
  formOfKind,
  formOfSchema,
  isFilled,
  sameValue,
} from "../../../workflows/dependents/value_form.ts";

const pod = (container: object) => ({
  spec: { template: { spec: { containers: [container] } } },
});

test("sameValue reads quantities where the schema of a kind has them", () => {
  const form = formOfKind(Deployment);
  const limits = (cpu: unknown) => pod({ resources: { limits: { cpu } } });
  const equal: readonly (readonly [unknown, unknown])[] = [
    ["1000m", "1"],
    [1, "1"],
    ["0.5", "500m"],
    ["1024Mi", "1Gi"],
    ["1e3", "1k"],
  ];
  for (const [asked, stored] of equal) {
    assert.equal(sameValue(limits(asked), limits(stored), form), true);
  }
  assert.equal(sameValue(limits("1100m"), limits("1"), form), false);
  assert.equal(sameValue(limits("much"), limits("1"), form), false);
  const env = (value: string) => pod({ env: [{ name: "A", value }] });
  assert.equal(sameValue(env("1000m"), env("1"), form), false);
  const data = (value: string) => ({ data: { limits: value } });
  assert.equal(sameValue(data("1.0"), data("1"), formOfKind(ConfigMap)), false);
});

test("sameValue keeps the number 80 and the name of a port apart, as servers do", () => {
  const form = formOfKind(Deployment);
  const probe = (port: unknown) =>
    pod({ livenessProbe: { tcpSocket: { port } } });
  assert.equal(sameValue(probe(80), probe(80), form), true);
  assert.equal(sameValue(probe(80), probe("80"), form), false);
  assert.equal(sameValue(probe("http"), probe("http"), form), true);
});

test("sameValue reads times to the last digit, whatever zeros stand behind it", () => {
  const form = formOfKind(Lease);
  const at = (renewTime: string) => ({ spec: { renewTime } });
  const same = (a: string, b: string) => sameValue(at(a), at(b), form);
  assert.equal(
    same("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z"),
    true,
  );
  assert.equal(
    same("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z"),
    true,
  );
  assert.equal(
    same("2026-01-01T00:00:00.000001Z", "2026-01-01T00:00:00.000002Z"),
    false,
  );
  assert.equal(same("soon", "2026-01-01T00:00:00Z"), false);
});

test("sameValue knows what is filled in inside of values that are owned whole", () => {
  const claim = { metadata: { name: "data" }, spec: { accessModes: ["RWO"] } };
  const stored = {
    ...claim,
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    spec: { ...claim.spec, volumeMode: "Filesystem" },
    status: { phase: "Pending" },
  };
  const templates = (one: object) => ({
    spec: { volumeClaimTemplates: [one] },
  });
  const form = formOfKind(StatefulSet);
  assert.equal(sameValue(templates(claim), templates(stored), form), true);
  const block = { ...stored, spec: { ...stored.spec, volumeMode: "Block" } };
  assert.equal(sameValue(templates(claim), templates(block), form), false);

  const policy = (ports: object) => ({
    spec: { ingress: [{ ports: [ports] }] },
  });
  const rules = formOfKind(NetworkPolicy);
  const udp = { port: 1, protocol: "UDP" };
  const tcp = { port: 1, protocol: "TCP" };
  assert.equal(sameValue(policy({ port: 1 }), policy(tcp), rules), true);
  assert.equal(sameValue(policy({ port: 1 }), policy(udp), rules), false);

  const role = { kind: "Role", name: "r" };
  assert.equal(
    sameValue(
      { roleRef: role },
      { roleRef: { ...role, apiGroup: "rbac.authorization.k8s.io" } },
      formOfKind(RoleBinding),
    ),
    true,
  );
});

test("sameValue treats missing and empty values as equal", () => {
  for (const empty of [null, "", [], {}, { a: null }, undefined]) {
    assert.equal(sameValue({ a: empty }, {}), true);
    assert.equal(sameValue({}, { a: empty }), true);
  }
  assert.equal(sameValue({ a: false }, {}), false);
  assert.equal(sameValue({ a: 0 }, {}), false);
});

test("formOfKind reads durations, times and defaults of a kind that a program defined", () => {
  const Cache = defineKind({
    group: "example.com",
    version: "v1",
    kind: "Cache",
    spec: z.object({
      timeout: z.string().meta({ format: "duration" }),
      rules: z.array(
        z.object({ path: z.string(), keep: z.boolean().default(true) }),
      ),
    }),
  });
  const form = formOfKind(Cache);
  const timeout = (value: string) => ({ spec: { timeout: value } });
  const same = (a: string, b: string) =>
    sameValue(timeout(a), timeout(b), form);
  assert.equal(same("1h", "1h0m0s"), true);
  assert.equal(same("90m", "1h30m0s"), true);
  assert.equal(same("1.5s", "1500ms"), true);
  assert.equal(same("-1m", "-60s"), true);
  assert.equal(same("0", "0s"), true);
  assert.equal(same("1h", "1h1ns"), false);
  assert.equal(same("a while", "1h"), false);
  for (const text of ["a while", "", "s", "1h and more", "0 h"]) {
    assert.equal(same(text, "0s"), false, text);
    assert.equal(same(text, `${text}, about`), false, text);
  }
  const rules = (rule: object) => ({ spec: { rules: [rule] } });
  assert.equal(
    sameValue(rules({ path: "/" }), rules({ path: "/", keep: true }), form),
    true,
  );
  assert.equal(
    sameValue(rules({ path: "/" }), rules({ path: "/", keep: false }), form),
    false,
  );
});

test("formOfKind uses common field names for unknown kinds", () => {
  const form = formOfKind(
    untyped({ group: "monitoring.example.com", version: "v1", kind: "Meter" }),
  );
  const requests = (memory: string) => ({
    spec: { deep: [{ resources: { requests: { memory } } }] },
  });
  assert.equal(sameValue(requests("1024Mi"), requests("1Gi"), form), true);
  assert.equal(
    sameValue({ spec: { size: "1024Mi" } }, { spec: { size: "1Gi" } }, form),
    false,
  );
});

test("formOfKind knows where an empty text is one, and where it is nothing", () => {
  const deployment = formOfKind(Deployment);
  const nothing = pod({ env: [{ name: "A", value: "" }] });
  assert.equal(
    sameValue(nothing, pod({ env: [{ name: "A" }] }), deployment),
    true,
  );
  for (const field of ["labels", "annotations"]) {
    assert.equal(
      sameValue({ metadata: { [field]: { a: "" } } }, {}, deployment),
      false,
    );
  }
  const config = formOfKind(ConfigMap);
  assert.equal(sameValue({ data: { a: "" } }, { data: {} }, config), false);
  assert.equal(sameValue({ data: {} }, {}, config), true);
  const custom = formOfSchema({ properties: { a: { type: "string" } } });
  assert.equal(sameValue({ a: "" }, {}, custom), false);
  assert.equal(sameValue({ a: null }, {}, custom), true);
});

test("sameValue sees items that a list has lost, gained or moved", () => {
  const list = fc.array(fc.constantFrom("a", "b", 1, { a: [1] }), {
    maxLength: 3,
  });
  fc.assert(fc.property(list, list, (desired, actual) => {
    const isSame = JSON.stringify(desired) === JSON.stringify(actual);
    assert.equal(sameValue(desired, actual), isSame);
    assert.equal(
      sameValue({ desired: [desired] }, { desired: [actual] }),
      isSame,
    );
  }));
});

test("sameValue takes null in a map of texts as an empty text", () => {
  assert.equal(sameValue({ a: null }, { a: "" }, "texts"), true);
  assert.equal(sameValue({ a: null }, { a: "x" }, "texts"), false);
  assert.equal(sameValue(null, "", "atomic"), false);
});

test("isFilled takes a default for an empty value, and no other value", () => {
  const form = formOfSchema({
    properties: { size: { type: "string", default: "small" }, label: {} },
  });
  const is = (name: string, desired: unknown, actual: unknown) =>
    isFilled(form, name, { desired, actual });
  assert.equal(is("size", null, "small"), true);
  assert.equal(is("size", null, "large"), false);
  assert.equal(is("size", "", "small"), false, "a custom resource keeps it");
  assert.equal(is("label", null, "small"), false);
});
