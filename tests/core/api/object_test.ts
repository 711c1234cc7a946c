import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApplyObject, UntypedObject } from "@coracle/operator/client";
import type { CustomResource } from "@coracle/operator/crd";
import type {
  ConfigMap,
  Deployment,
  KubernetesObject,
  RoleBinding,
  StatefulSet,
} from "@coracle/operator/kinds";

const metadata = { name: "a" };
const template = { spec: { containers: [{ name: "a", image: "a:1" }] } };
const selector = { matchLabels: { app: "a" } };
const roleRef = {
  apiGroup: "rbac.authorization.k8s.io",
  kind: "Role",
  name: "a",
};

/** Type tests: an apply configuration that compiles. */
function accept<T extends KubernetesObject>(object: ApplyObject<T>): void {
  assert.equal(object.metadata.name, "a");
}

test("ApplyObject takes whole objects and parts that the server can merge", () => {
  accept<ConfigMap>({ metadata });
  accept<ConfigMap>({
    metadata: { ...metadata, labels: { a: "b" } },
    data: {},
  });
  accept<Deployment>({ metadata, spec: { selector, template } });
  accept<Deployment>({ metadata, spec: { replicas: 3 } });
  accept<Deployment>({ metadata });
  accept<RoleBinding>({ metadata, roleRef });
  accept<UntypedObject>({ metadata, anything: { at: "all" } });
  accept<CustomResource<{ a: string; b: string }, never>>({
    metadata,
    spec: { a: "" },
  });
});

test("ApplyObject requires the fields without which nothing is created", () => {
  // @ts-expect-error -- a RoleBinding without a role
  accept<RoleBinding>({ metadata });
  // @ts-expect-error -- a role without a name
  accept<RoleBinding>({ metadata, roleRef: { kind: "Role", nam: "a" } });
  // @ts-expect-error -- pods without a selector
  accept<Deployment>({ metadata, spec: { template } });
  // @ts-expect-error -- pods without a selector
  accept<StatefulSet>({ metadata, spec: { replicas: 1, template } });
  // @ts-expect-error -- no such field
  accept<Deployment>({ metadata, spec: { selector, template, replica: 1 } });
  assert.throws(() => {
    // @ts-expect-error -- without metadata
    accept<ConfigMap>({ data: {} });
  }, TypeError);
});
