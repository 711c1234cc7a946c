import assert from "node:assert/strict";
import { test } from "node:test";
import type { Context } from "@coracle/operator";
import type {
  ApplyObject,
  Kind,
  UntypedObject,
} from "@coracle/operator/client";
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

interface Sized extends KubernetesObject {
  readonly spec: { readonly size: number; readonly note?: string };
}

/** Writes of a function for all kinds that have a size; only compiled. */
export async function resize<P extends Sized>(
  kind: Kind<P>,
  ctx: Context<P>,
  key: { readonly name: string; readonly namespace: string },
): Promise<P> {
  const spec = { size: 1 };
  const { name } = key;
  await ctx.create<Sized>(kind, { metadata: { name }, spec });
  await ctx.apply<Sized>(kind, { metadata: { name }, spec });
  await ctx.patch<Sized>(kind, name, { spec });
  await ctx.client.create<Sized>(kind, { metadata: key, spec });
  await ctx.client.patch<Sized>(kind, key, { spec });
  // @ts-expect-error -- no such field
  await ctx.patch<Sized>(kind, name, { spec: { sizes: 1 } });
  const read = await ctx.client.get(kind, key);
  return await ctx.client.replace(kind, { ...read, metadata: read.metadata });
}

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
