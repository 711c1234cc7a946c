import assert from "node:assert/strict";
import { test } from "node:test";
import type { UntypedObject } from "@coracle/operator/client";
import { nextCrdStatus } from "../../../dev/apiserver/crd/crd_status.ts";
import type { CrdObject } from "../../../core/crd/crd_object.ts";

type Status = NonNullable<CrdObject["status"]>;

function definition(
  plural: string,
  names: Record<string, unknown> = {},
  status?: unknown,
): UntypedObject {
  return {
    metadata: { name: `${plural}.a.dev` },
    spec: {
      group: "a.dev",
      names: {
        plural,
        singular: plural.slice(0, -1),
        kind: plural,
        listKind: `${plural}List`,
        ...names,
      },
      versions: [{ name: "v1", storage: true }],
    },
    status,
  };
}

function condition(status: unknown, type: string): string | undefined {
  const found = (status as Status).conditions?.find((one) => one.type === type);
  return found && `${found.status} ${found.reason} ${found.message}`;
}

/** CRD with accepted names. */
function accepted(
  plural: string,
  names?: Record<string, unknown>,
): UntypedObject {
  const crd = definition(plural, names);
  return { ...crd, status: nextCrdStatus(crd, [], 0) };
}

test("nextCrdStatus() says whether an API of Kubernetes is approved", () => {
  const type = "KubernetesAPIApprovalPolicyConformant";
  const said = (group: string, note: string) => {
    const crd = definition("boats");
    const annotations = { "api-approved.kubernetes.io": note };
    return condition(
      nextCrdStatus(
        {
          ...crd,
          metadata: { ...crd.metadata, annotations },
          spec: { ...crd.spec as object, group },
        } as UntypedObject,
        [],
        0,
      ),
      type,
    );
  };
  assert.equal(said("a.dev", "https://a/1"), undefined);
  assert.equal(
    said("a.k8s.io", "https://a/1"),
    "True ApprovedAnnotation approved in https://a/1",
  );
  assert.equal(
    said("k8s.io", "unapproved, a test"),
    'False UnapprovedAnnotation not approved: "unapproved, a test"',
  );
  assert.match(
    String(said("k8s.io", "")),
    /^False MissingAnnotation protected/,
  );
  for (const note of ["a", "mailto:a", "/a"]) {
    assert.match(String(said("k8s.io", note)), /^False InvalidAnnotation prot/);
  }
});

test("nextCrdStatus() accepts free names", () => {
  const status = nextCrdStatus(definition("boats"), [], 1_000);
  assert.equal(
    condition(status, "NamesAccepted"),
    "True NoConflicts no conflicts found",
  );
  assert.equal(
    condition(status, "Established"),
    "True InitialNamesAccepted the initial names have been accepted",
  );
  assert.deepEqual((status as Status).storedVersions, ["v1"]);
  assert.equal(
    (status as Status).conditions?.[0]?.lastTransitionTime,
    "1970-01-01T00:00:01Z",
  );
});

test("nextCrdStatus() returns the same status if nothing changes", () => {
  const crd = accepted("boats");
  assert.equal(nextCrdStatus(crd, [crd], 99_000), crd.status);
});

test("nextCrdStatus() rejects a name of another CRD in the group", () => {
  const other = accepted("boats", { shortNames: ["bt"] });
  const crd = definition("ships", { shortNames: ["bt", "sh"] });
  const status = nextCrdStatus(crd, [other, crd], 0);
  assert.equal(
    condition(status, "NamesAccepted"),
    'False ShortNamesConflict "bt" is already in use',
  );
  assert.equal(
    condition(status, "Established"),
    "False NotAccepted not all names are accepted",
  );
  assert.equal((status as Status).acceptedNames?.plural, "ships");
  assert.equal((status as Status).acceptedNames?.shortNames, undefined);
});

test("nextCrdStatus() accepts equal names in other groups", () => {
  const other = accepted("boats");
  (other.spec as { group: string }).group = "b.dev";
  const crd = definition("ships", { kind: "boats" });
  const status = nextCrdStatus(crd, [other], 0);
  assert.match(condition(status, "NamesAccepted") ?? "", /^True/);
});

test("nextCrdStatus() keeps a CRD established and its names accepted", () => {
  const other = accepted("boats", { shortNames: ["bt"] });
  const crd = accepted("ships", { shortNames: ["sh"] });
  (crd.spec as CrdObject["spec"] & { names: unknown }).names = {
    ...(crd.spec as CrdObject["spec"]).names,
    shortNames: ["bt"],
  };
  const status = nextCrdStatus(crd, [other, crd], 0);
  assert.match(condition(status, "NamesAccepted") ?? "", /^False/);
  assert.match(condition(status, "Established") ?? "", /^True/);
  assert.deepEqual((status as Status).acceptedNames?.shortNames, ["sh"]);
});

test("nextCrdStatus() keeps all former storage versions", () => {
  const crd = accepted("boats");
  (crd.spec as { versions: unknown }).versions = [
    { name: "v1", storage: false },
    { name: "v2", storage: true },
  ];
  const status = nextCrdStatus(crd, [crd], 0);
  assert.deepEqual((status as Status).storedVersions, ["v1", "v2"]);
});
