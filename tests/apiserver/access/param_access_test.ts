import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiSession, withSession } from "../support/api_session.ts";

const GROUP = "/apis/admissionregistration.k8s.io/v1";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const MAP = { apiVersion: "v1", kind: "ConfigMap" };
const KINDS = ["validating", "mutating"] as const;
type Type = typeof KINDS[number];

function policySpec(type: Type, paramKind: object | undefined): object {
  const resourceRules = [{
    operations: ["CREATE"],
    apiGroups: [""],
    apiVersions: ["v1"],
    resources: ["secrets"],
  }];
  return {
    paramKind,
    matchConstraints: { resourceRules },
    ...(type === "validating" ? { validations: [{ expression: "true" }] } : {
      reinvocationPolicy: "Never",
      mutations: [{
        patchType: "ApplyConfiguration",
        applyConfiguration: { expression: "Object{}" },
      }],
    }),
  };
}

function bindingOf(type: Type, policyName: string, paramRef: object): object {
  return {
    metadata: { name: "b" },
    spec: {
      policyName,
      paramRef: { parameterNotFoundAction: "Allow", ...paramRef },
      ...(type === "validating" && { validationActions: ["Deny"] }),
    },
  };
}

/** Gives a user the right to write policies, and other rights. */
async function grant(
  session: ApiSession,
  name: string,
  ...rules: readonly object[]
): Promise<void> {
  const admission = ["admissionregistration.k8s.io"];
  const all = { apiGroups: admission, resources: ["*"], verbs: ["*"] };
  await session.create(`${RBAC}/clusterroles`, {
    metadata: { name },
    rules: [all, ...rules],
  });
  const apiGroup = "rbac.authorization.k8s.io";
  await session.create(`${RBAC}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup, kind: "ClusterRole", name },
    subjects: [{ apiGroup, kind: "User", name }],
  });
}

const ANN = "&{ann  [system:authenticated] map[]}";

// What kube-apiserver 1.36 answers.
for (const type of KINDS) {
  test(`The writer of a ${type} policy may read its parameters`, () =>
    withSession(async (session) => {
      const maps = { apiGroups: [""], resources: ["configmaps"] };
      await grant(session, "ann");
      await grant(session, "bob", { ...maps, verbs: ["get"] });
      await grant(session, "eve", {
        ...maps,
        verbs: ["get"],
        resourceNames: ["x"],
      });
      const send = async (
        user: string,
        method: "POST" | "PATCH",
        path: string,
        body: object,
      ) => {
        const { status, body: answer } = await session.send(
          method,
          `${GROUP}/${type}admission${path}`,
          body,
          {
            "impersonate-user": user,
            ...(method === "PATCH" &&
              { "content-type": "application/merge-patch+json" }),
          },
        );
        return status < 300 ? status : answer.details.causes[0].message;
      };
      const make = (user: string, name: string, paramKind?: object) =>
        send(user, "POST", "policies", {
          metadata: { name },
          spec: policySpec(type, paramKind),
        });
      const refusal = (kind: string, apiVersion = "v1") =>
        `Forbidden: user ${ANN} must have "get" permission on all objects of the referenced paramKind (kind=${kind}, apiVersion=${apiVersion})`;
      const nope = { apiVersion: "a.dev/v1", kind: "Nope" };
      assert.equal(await make("ann", "p", MAP), refusal("ConfigMap"));
      assert.equal(await make("ann", "n", nope), refusal("Nope", "a.dev/v1"));
      assert.match(await make("eve", "p", MAP), /^Forbidden: /);
      assert.equal(await make("bob", "p", MAP), 201);
      assert.equal(await make("ann", "none"), 201);
      const label = { metadata: { labels: { a: "b" } } };
      assert.equal(await send("ann", "PATCH", "policies/p", label), 200);
      assert.equal(
        await send("ann", "PATCH", "policies/p", {
          spec: { paramKind: { kind: "Secret" } },
        }),
        refusal("Secret"),
      );
    }));

  test(`The writer of a ${type} binding may read its parameters`, () =>
    withSession(async (session) => {
      const maps = { apiGroups: [""], resources: ["configmaps"] };
      await grant(session, "ann");
      await grant(session, "bob", { ...maps, verbs: ["get"] });
      await grant(session, "cat", { ...maps, verbs: ["list"] });
      const nope = { apiVersion: "a.dev/v1", kind: "Nope" };
      for (const [name, kind] of [["p", MAP], ["n", nope], ["none"]] as const) {
        await session.create(`${GROUP}/${type}admissionpolicies`, {
          metadata: { name },
          spec: policySpec(type, kind),
        });
      }
      const bindings = `${GROUP}/${type}admissionpolicybindings`;
      const bind = async (user: string, policy: string, paramRef: object) => {
        const { status, body } = await session.send(
          "POST",
          `${bindings}?dryRun=All`,
          bindingOf(type, policy, paramRef),
          { "impersonate-user": user },
        );
        return status < 300 ? status : body.details.causes[0].message;
      };
      const named = { name: "x", namespace: "default" };
      const selected = { selector: {} };
      const refusal = (verb: string) =>
        type === "mutating"
          ? `Forbidden: user ${verb} does not have "${ANN}" permission on the object referenced by paramRef`
          : `Forbidden: user ${ANN} does not have "${verb}" permission on the object referenced by paramRef`;
      const unknown = (what: string) =>
        `Forbidden: unable to ${what} to determine minimum required permissions and user ${ANN} does not have "get" permission for all groups, versions and resources`;
      assert.equal(await bind("ann", "p", named), refusal("get"));
      assert.equal(await bind("ann", "p", selected), refusal("list"));
      assert.equal(await bind("ann", "none", named), refusal("get"));
      assert.equal(
        await bind("ann", "gone", named),
        unknown("get policy gone"),
      );
      assert.equal(
        await bind("ann", "n", named),
        unknown("resolve paramKind &{a.dev/v1 Nope}"),
      );
      assert.equal(await bind("bob", "p", named), 201);
      assert.match(await bind("bob", "p", selected), /^Forbidden: /);
      assert.equal(await bind("cat", "p", selected), 201);
      assert.match(await bind("cat", "p", named), /^Forbidden: /);
      await session.create(bindings, bindingOf(type, "p", named));
      const label = { metadata: { labels: { a: "b" } } };
      const { status } = await session.send("PATCH", `${bindings}/b`, label, {
        "impersonate-user": "ann",
        "content-type": "application/merge-patch+json",
      });
      assert.equal(status, 422, "also where the reference stays");
    }));
}

test("A refused reader of parameters is shown with groups and extras", () =>
  withSession(async (session) => {
    await grant(session, "ann");
    const { body } = await session.send(
      "POST",
      `${GROUP}/validatingadmissionpolicies`,
      { metadata: { name: "p" }, spec: policySpec("validating", MAP) },
      {
        "impersonate-user": "ann",
        "impersonate-group": "devs",
        "impersonate-extra-scopes": "view",
      },
    );
    assert.match(
      body.message,
      /user &\{ann {2}\[devs system:authenticated\] map\[scopes:\[view\]\]\} must/,
    );
  }));
