/**
 * Makes a namespace for each tenant, with what a folder of YAML has for it: quota,
 * limits, network policy and the rights of its owners. What is added to the folder
 * comes to all tenants, and what is taken out goes.
 *
 *     apiVersion: sample.coracle.dev/v1
 *     kind: Tenant
 *     metadata: { name: blue }
 *     spec: { owners: [ann@example.com], cpu: "8" }
 *
 * TENANT_FOLDER is the folder, such as a mounted ConfigMap.
 */
import process from "node:process";
import { fileURLToPath } from "node:url";
import {
  defineKind,
  type ObjectOf,
  Operator,
  type OperatorOptions,
  patchStatus,
  type UntypedObject,
} from "@coracle/operator";
import {
  LimitRange,
  Namespace,
  NetworkPolicy,
  ResourceQuota,
  RoleBinding,
} from "@coracle/operator/kinds";
import {
  conditionedStatus,
  fromFiles,
  objectsDependent,
  readyColumns,
  Workflow,
} from "@coracle/operator/workflows";
import { z } from "zod";

const Tenant = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Tenant",
  scope: "Cluster",
  spec: z.object({
    owners: z.array(z.string()).default([]),
    cpu: z.string().regex(/^[1-9][0-9]{0,3}$/).default("4"),
  }),
  status: conditionedStatus(),
  printerColumns: readyColumns,
});
type Tenant = ObjectOf<typeof Tenant>;

const FOLDER = process.env["TENANT_FOLDER"] ??
  fileURLToPath(new URL("tenant", import.meta.url));

/** Object of the folder as that of a tenant. */
function ofTenant(object: UntypedObject, tenant: Tenant): UntypedObject {
  const { metadata: { name }, spec: { owners, cpu } } = tenant;
  switch (object.kind) {
    case "Namespace":
      return { ...object, metadata: { ...object.metadata, name } };
    case "ResourceQuota":
      return { ...object, spec: { hard: { "limits.cpu": cpu } } };
    case "RoleBinding": {
      const apiGroup = "rbac.authorization.k8s.io";
      const subjects = owners.map((name) => ({ apiGroup, kind: "User", name }));
      return { ...object, subjects };
    }
    default:
      return object;
  }
}

/** Operator for tenants. */
export function operator(
  options: OperatorOptions = {},
  folder: string = FOLDER,
): Operator {
  const made = new Operator(options);
  const workflow = new Workflow<Tenant>().add(
    "objects",
    objectsDependent({
      kinds: [Namespace, ResourceQuota, LimitRange, NetworkPolicy, RoleBinding],
      namespace: ({ metadata: { name } }) => name,
      objects: async (tenant) =>
        (await fromFiles(folder)).map((object) => ofTenant(object, tenant)),
    }),
  );
  made.register(Tenant, {
    reconcile(tenant, ctx) {
      const conditions = workflow.resultOf(ctx).rollUp(tenant);
      const observedGeneration = tenant.metadata.generation;
      return patchStatus({ conditions, observedGeneration });
    },
  }, {
    workflow,
    install: true,
    // Changes of the folder are seen then.
    maxInterval: "10m",
  });
  return made;
}

if (import.meta.main) await operator().run();
