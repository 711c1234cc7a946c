import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigMap } from "@coracle/operator/kinds";
import { until } from "../../support/until.ts";
import { withSession } from "../support/api_session.ts";
import { workloadTest } from "../support/workload_case.ts";

test(
  "the foreground deletion of a cycle of owners ends",
  workloadTest({}, async ({ client, clock }) => {
    const names = ["a", "b", "c"];
    const uids = new Map<string, string>();
    for (const name of names) {
      const key = { namespace: "default", name };
      const { metadata } = await client.create(ConfigMap, { metadata: key });
      uids.set(name, metadata.uid ?? "");
    }
    for (const [index, name] of names.entries()) {
      const owner = names[(index + 2) % 3] ?? "";
      await client.patch(ConfigMap, { namespace: "default", name }, {
        metadata: {
          ownerReferences: [{
            apiVersion: "v1",
            kind: "ConfigMap",
            name: owner,
            uid: uids.get(owner) ?? "",
            controller: true,
            blockOwnerDeletion: true,
          }],
        },
      });
    }
    await client.delete(ConfigMap, { namespace: "default", name: "a" }, {
      propagationPolicy: "Foreground",
    });
    await clock.advance(10);
    const { items } = await client.list(ConfigMap, { namespace: "default" });
    assert.deepEqual(items.map(({ metadata }) => metadata.name), [
      "kube-root-ca.crt",
    ]);
  }),
);

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OWNERS = {
  metadata: { name: "owners.example.com" },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { plural: "owners", kind: "Owner" },
    versions: [{
      name: "v1",
      served: true,
      storage: true,
      schema: { openAPIV3Schema: { type: "object" } },
    }],
  },
};
const MAPS = "/api/v1/namespaces/default/configmaps";

for (const propagationPolicy of ["Background", "Foreground"]) {
  test(`Objects with webhooks are garbage-collected: ${propagationPolicy}`, async () => {
    const reviewed: string[] = [];
    await withSession(async (session) => {
      const { metadata } = await session.create(MAPS, {
        metadata: { name: "owner" },
      });
      const owner = { name: "owner", uid: metadata.uid };
      await session.create(MAPS, {
        metadata: {
          name: "part",
          ownerReferences: [{
            apiVersion: "v1",
            kind: "ConfigMap",
            ...owner,
            blockOwnerDeletion: true,
          }],
        },
      });
      await session.create(
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        {
          metadata: { name: "see" },
          webhooks: [{
            name: "see.coracle.dev",
            clientConfig: { service: { namespace: "ops", name: "see" } },
            rules: [{
              operations: ["UPDATE", "DELETE"],
              apiGroups: [""],
              apiVersions: ["v1"],
              resources: ["configmaps"],
            }],
            sideEffects: "None",
            admissionReviewVersions: ["v1"],
          }],
        },
      );
      await session.send("DELETE", `${MAPS}/owner`, { propagationPolicy });
      for (const name of ["part", "owner"]) {
        await until(
          `${name} is gone`,
          async () =>
            (await session.send("GET", `${MAPS}/${name}`)).status === 404,
        );
      }
      assert.ok(reviewed.includes("DELETE part"), reviewed.join());
    }, {
      services: {
        // deno-lint-ignore no-explicit-any -- an AdmissionReview
        "ops/see": ({ apiVersion, kind, request }: any) => {
          reviewed.push(`${request.operation} ${request.name}`);
          const response = { uid: request.uid, allowed: true };
          return { apiVersion, kind, response };
        },
      },
    });
  });
}

test("Objects stay while the kind of an owner is not served", async () => {
  await withSession(async (session) => {
    const owned = (name: string, apiVersion: string, kind: string) =>
      session.create(MAPS, {
        metadata: {
          name,
          ownerReferences: [{ apiVersion, kind, name: "none", uid: name }],
        },
      });
    const names = async () => {
      const { body } = await session.send("GET", MAPS);
      return body.items.map(({ metadata }: { metadata: { name: string } }) =>
        metadata.name
      ).filter((name: string) => name !== "kube-root-ca.crt");
    };
    await owned("later", "example.com/v1", "Owner");
    await owned("never", "apps/v1beta1", "Deployment");
    await owned("gone", "v1", "ConfigMap");
    const role = await session.create(
      "/apis/rbac.authorization.k8s.io/v1/clusterroles",
      {
        metadata: {
          name: "wide",
          ownerReferences: [{
            apiVersion: "v1",
            kind: "ConfigMap",
            name: "none",
            uid: "gone",
          }],
        },
      },
    );
    await until(
      "an object whose owner is gone is collected",
      async () => (await names()).join() === "later,never",
    );
    const { status } = await session.send(
      "GET",
      `/apis/rbac.authorization.k8s.io/v1/clusterroles/${role.metadata.name}`,
    );
    assert.equal(status, 200);
    await session.create(DEFINITIONS, OWNERS);
    await until(
      "an object whose owner turns out to be gone is collected",
      async () => (await names()).join() === "never",
    );
  });
});

test("Objects go with an owner whose definition goes too", async () => {
  await withSession(async (session) => {
    await session.create(DEFINITIONS, OWNERS);
    const owners = "/apis/example.com/v1/namespaces/default/owners";
    const type = { apiVersion: "example.com/v1", kind: "Owner" };
    const metadata = { name: "a" };
    const { metadata: { uid } } = await until(
      "the kind is served",
      async () => {
        const answer = await session.send("POST", owners, {
          ...type,
          metadata,
        });
        return answer.status === 201 ? answer.body : undefined;
      },
    );
    await session.create(MAPS, {
      metadata: {
        name: "part",
        ownerReferences: [{ ...type, name: "a", uid }],
      },
    });
    await session.send("DELETE", `${DEFINITIONS}/owners.example.com`);
    await until("the object is collected", async () => {
      const { status } = await session.send("GET", `${MAPS}/part`);
      return status === 404;
    });
  });
});
