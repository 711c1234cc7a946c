import assert from "node:assert/strict";
import { test } from "node:test";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";
import { z } from "zod";
import {
  defineKind,
  Operator,
  untyped,
  type UntypedObject,
} from "@coracle/operator/core";

const Site = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Site",
  spec: z.object({}),
});

const Certificate = untyped({
  group: "certs.test",
  version: "v1",
  kind: "Certificate",
  plural: "certificates",
  scope: "Namespaced",
});

const DEFINITION: UntypedObject = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "certificates.certs.test" },
  spec: {
    group: "certs.test",
    scope: "Namespaced",
    names: {
      kind: "Certificate",
      listKind: "CertificateList",
      plural: "certificates",
      singular: "certificate",
    },
    versions: [{
      name: "v1",
      served: true,
      storage: true,
      schema: { openAPIV3Schema: { type: "object" } },
    }],
  },
};

const SITE: UntypedObject = {
  apiVersion: "test.coracle.dev/v1",
  kind: "Site",
  metadata: { namespace: "default", name: "a" },
  spec: {},
};

/** Checks an operator that owns objects of a kind of others. */
function check(options: {
  readonly examples: readonly UntypedObject[];
  readonly workload?: readonly { readonly apply: UntypedObject }[];
}): ReturnType<typeof checkOperator> {
  return checkOperator({
    only: ["none"],
    kinds: [Site],
    ...options,
    operator(given) {
      const operator = new Operator(given);
      operator.register(Site, {
        async reconcile({ metadata: { name } }, ctx) {
          await ctx.apply(Certificate, { metadata: { name } });
        },
      }, { owns: [Certificate] });
      return operator;
    },
  });
}

for (
  const [how, options] of [
    ["generated steps", { examples: [SITE, DEFINITION] }],
    ["own steps", { examples: [DEFINITION], workload: [{ apply: SITE }] }],
  ] as const
) {
  test(`A check with ${how} installs the definition of an owned kind`, async () => {
    const { findings, coverage } = await check(options);
    assert.deepEqual(findings.map(({ title }) => title), []);
    assert.equal(coverage.unsettled, 0);
    assert(coverage.writes > 0);
  });
}

test("A check says why an operator does not start", async () => {
  const { findings: [found] } = await check({
    examples: [],
    workload: [{ apply: SITE }],
  });
  assert.match(
    found?.title ?? "",
    /^the operator ends: Cannot watch certs.test\/v1 Certificate: the server does not serve it/,
  );
});
