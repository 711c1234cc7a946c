import assert from "node:assert/strict";
import { type Kind, kubernetesDependent, Workflow } from "@coracle/operator";
import {
  ConfigMap,
  type KubernetesObject,
  RoleBinding,
  Secret,
  Service,
  StatefulSet,
} from "@coracle/operator/kinds";
import { Gadget, scenario } from "../support/operator_fixture.ts";

/** Kinds with an immutable field, and the error of the server to 1.36 and from 1.37. */
const FIXED = [
  [
    /cannot change roleRef|roleRef: Invalid value: .*"second"}: field is immutable/,
    RoleBinding,
    (value: string) => ({
      roleRef: {
        apiGroup: "rbac.authorization.k8s.io",
        kind: "Role",
        name: value,
      },
    }),
  ],
  [
    /field is immutable when `immutable` is set/,
    ConfigMap,
    (value: string) => ({ immutable: true, data: { value } }),
  ],
  [
    /FieldValueForbidden in data, which is immutable/,
    Secret,
    (value: string) => ({ immutable: true, stringData: { value } }),
  ],
  [
    /updates to statefulset spec for fields other than|spec\.serviceName: Invalid value: "second": field is immutable/,
    StatefulSet,
    (value: string) => ({
      spec: {
        serviceName: value,
        selector: { matchLabels: { app: "a" } },
        template: {
          metadata: { labels: { app: "a" } },
          spec: { containers: [{ name: "main", image: "a" }] },
        },
      },
    }),
  ],
  [
    /may not change once set/,
    Service,
    (value: string) => ({
      spec: {
        clusterIP: value === "first" ? "10.0.0.21" : "10.0.0.22",
        ports: [{ name: "main", port: 80 }],
      },
    }),
  ],
] as const;

for (const recreate of [true, false]) {
  scenario(
    recreate
      ? "A dependent of which a field cannot change is made again where that is asked for"
      : "A dependent of which a field cannot change fails the run, and stays as it is",
    async (fixture) => {
      const workflow = FIXED.reduce<Workflow<Gadget>>(
        (all, [, kind, fields]) =>
          all.add(
            kind.kind,
            kubernetesDependent<Gadget, KubernetesObject>(kind as Kind, {
              desired: ({ metadata, spec }) => ({
                metadata: { name: metadata.name },
                ...fields(spec.value),
              }),
              recreate,
            }),
          ) as never,
        new Workflow<Gadget>(),
      );
      const failures: unknown[] = [];
      const operator = fixture.operator();
      operator.register(Gadget, {
        reconcile: () => {},
        onError: (_gadget, error) => {
          failures.push(error);
        },
      }, { workflow, retry: false });
      await fixture.start(operator);
      await fixture.create("a");
      const key = { namespace: "default", name: "a" };
      const uids = () =>
        Promise.all(
          FIXED.map(async ([, kind]) =>
            (await fixture.client.find(kind as Kind, key))?.metadata.uid
          ),
        );
      await fixture.until(async () => !(await uids()).includes(undefined));
      const before = await uids();
      await fixture.change("a", { value: "second" });
      if (recreate) {
        await fixture.until(async () =>
          (await uids()).every((uid, index) =>
            uid !== undefined && uid !== before[index]
          )
        );
        assert.deepEqual(failures, []);
        return;
      }
      await fixture.until(() => failures.length === 1);
      assert.deepEqual(await uids(), before);
      const { errors } = failures[0] as AggregateError;
      const told = errors.map(String).join("\n");
      for (const [words] of FIXED) assert.match(told, words);
    },
  );
}
