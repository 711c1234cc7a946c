import assert from "node:assert/strict";
import { kubectlTest } from "../../support/kubectl_test_case.ts";
import type { Kubectl } from "../../support/kubectl.ts";
import { Program } from "../../support/program.ts";
import { until } from "../../support/until.ts";

/** Creates a ConfigMap that owns another one. */
async function createFamily(kubectl: Kubectl): Promise<void> {
  await kubectl.run("create configmap parent");
  const uid = await kubectl.run("get cm parent -o jsonpath={.metadata.uid}");
  await kubectl.feed(
    JSON.stringify({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name: "child",
        ownerReferences: [{
          apiVersion: "v1",
          kind: "ConfigMap",
          name: "parent",
          uid,
          blockOwnerDeletion: true,
        }],
      },
    }),
    "create -f -",
  );
}

function find(kubectl: Kubectl, name: string): Promise<string> {
  return kubectl.run(`get cm ${name} --ignore-not-found -o name`);
}

kubectlTest(
  "kubectl delete in the background deletes owned objects too",
  async (kubectl) => {
    await createFamily(kubectl);
    assert.equal(
      await kubectl.run("delete configmap parent --cascade=background"),
      'configmap "parent" deleted\n',
    );
    await until(
      "the child is gone",
      async () => await find(kubectl, "child") === "",
    );
  },
);

kubectlTest(
  "kubectl delete in the foreground deletes owned objects first",
  async (kubectl) => {
    await createFamily(kubectl);
    await kubectl.run("delete configmap parent --cascade=foreground");
    assert.equal(await find(kubectl, "parent"), "");
    assert.equal(await find(kubectl, "child"), "");
  },
);

kubectlTest(
  "kubectl delete with orphan leaves owned objects without an owner",
  async (kubectl) => {
    await createFamily(kubectl);
    await kubectl.run("delete configmap parent --cascade=orphan");
    assert.equal(
      await kubectl.run("get cm child -o jsonpath={.metadata.ownerReferences}"),
      "",
    );
  },
);

kubectlTest(
  "kubectl delete waits for finalizers, and --wait=false does not",
  async (kubectl) => {
    await kubectl.feed(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: held, finalizers: [example.com/hold] }\n",
      "create -f -",
    );
    await kubectl.run("delete configmap held --wait=false");
    assert.match(
      await kubectl.run(
        "get cm held -o jsonpath={.metadata.deletionTimestamp}",
      ),
      /^\d{4}-\d\d-\d\dT/,
    );
    assert.match(
      await kubectl.fails("wait cm/held --for=delete --timeout=1s"),
      /timed out waiting for the condition/,
    );
    const deleting = new Program(
      kubectl.command("delete configmap held --timeout=20s"),
    );
    await deleting.says(/"held" deleted/);
    assert.equal(deleting.code, undefined, "it did not wait");
    await kubectl.run(
      "patch configmap held --type json -p",
      '[{"op":"remove","path":"/metadata/finalizers"}]',
    );
    await until("kubectl has seen it go", () => deleting.code === 0);
  },
);

kubectlTest(
  "kubectl delete accepts labels, --all and files",
  async (kubectl) => {
    for (const name of ["a", "b", "c"]) await kubectl.run(`create cm ${name}`);
    await kubectl.run("label cm a b tier=front");
    assert.equal(
      await kubectl.run("delete cm -l tier=front"),
      'configmap "a" deleted\nconfigmap "b" deleted\n',
    );
    assert.match(await kubectl.run("delete cm --all"), /"c" deleted/);
    assert.match(await kubectl.fails("delete cm c"), /"c" not found/);
    assert.equal(await kubectl.run("delete cm c --ignore-not-found"), "");
  },
);

kubectlTest(
  "kubectl delete of a namespace deletes everything in it",
  async (kubectl) => {
    const name = `${kubectl.namespace}-more`;
    await kubectl.run(`create namespace ${name}`);
    await kubectl.run(`create configmap inside -n ${name}`);
    await kubectl.run(`delete namespace ${name}`);
    assert.match(await kubectl.fails(`get namespace ${name}`), /not found/);
  },
);
