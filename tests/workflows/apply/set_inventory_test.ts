import assert from "node:assert/strict";
import type { Client } from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import { applySet, diffSet } from "@coracle/operator/workflows";
import { applyTest, configMap, OWNER, secret, told } from "./apply_case.ts";

const KEY = { namespace: "default", name: "shop-inventory" };
const OPTIONS = { owner: OWNER, inventory: { name: KEY.name } };

/** Names of the objects that the inventory lists. */
async function listed(client: Client): Promise<readonly string[]> {
  const { data = {} } = await client.get(ConfigMap, KEY);
  const list = JSON.parse(data["inventory"] ?? "") as { name: string }[];
  return list.map(({ name }) => name);
}

applyTest(
  "A kept inventory tells which objects left the set",
  async ({ client, writes }) => {
    await applySet(client, [configMap("a"), configMap("b")], OPTIONS);
    assert.deepEqual(await listed(client), ["a", "b"]);
    const count = writes.length;
    await applySet(client, [configMap("b"), configMap("a")], OPTIONS);
    assert.equal(writes.length, count, "the same set is not written again");

    const planned = await diffSet(client, [configMap("b")], OPTIONS);
    assert.deepEqual(told(planned), [
      "ConfigMap/b unchanged",
      "ConfigMap/a deleted",
    ]);
    assert.deepEqual(await listed(client), ["a", "b"]);
    const { changes } = await applySet(client, [configMap("b")], OPTIONS);
    assert.deepEqual(told(changes), told(planned));
    assert.deepEqual(await listed(client), ["b"]);

    const none = await applySet(client, [], OPTIONS);
    assert.deepEqual(told(none.changes), ["ConfigMap/b deleted"]);
    assert.deepEqual(await listed(client), []);
  },
);

applyTest(
  "A kept inventory forgets nothing when an apply fails",
  async ({ client }) => {
    await applySet(client, [configMap("a")], OPTIONS);
    const refused = secret({ login: "no base64!" });
    const failing = applySet(client, [configMap("b"), refused], OPTIONS);
    await assert.rejects(failing, { name: "ApplySetError" });
    assert.deepEqual((await listed(client)).toSorted(), ["a", "b", "login"]);

    // What was applied before the failure, or not at all, is deleted later.
    const { changes } = await applySet(client, [configMap("c")], OPTIONS);
    assert.deepEqual(told(changes).toSorted(), [
      "ConfigMap/a deleted",
      "ConfigMap/b deleted",
      "ConfigMap/c created",
      "Secret/login deleted",
    ]);
    assert.deepEqual(await listed(client), ["c"]);
  },
);

applyTest(
  "A kept inventory is refused where it is of another set or unreadable",
  async ({ client, writes }) => {
    await applySet(client, [configMap("a")], OPTIONS);
    const other = { ...OPTIONS, owner: { ...OWNER, name: "other" } };
    const place =
      "the inventory of the set in ConfigMap default/shop-inventory";
    const count = writes.length;
    await assert.rejects(applySet(client, [], other), {
      message:
        `Cannot use ${place}: it is that of another set, as its labels say`,
    });
    assert.equal(writes.length, count);
    for (const inventory of ["", "{}", "[1]", '[{"apiVersion":"v1"}]']) {
      await client.patch(ConfigMap, KEY, { data: { inventory } });
      await assert.rejects(applySet(client, [], OPTIONS), {
        message:
          `Cannot read ${place}: its field "inventory" must list objects with apiVersion, kind and name as JSON`,
      });
    }
    const itself = configMap(KEY.name);
    await assert.rejects(applySet(client, [itself], OPTIONS), {
      name: "RangeError",
      message:
        "Cannot apply a set: its inventory cannot be in it: received ConfigMap default/shop-inventory",
    });
    await assert.rejects(applySet(client, [], { ...OPTIONS, previous: [] }), {
      name: "TypeError",
      message:
        'Cannot read the options of applySet(): "inventory" and "previous" are two inventories, so give one of them',
    });
    const unnamed = { owner: OWNER, inventory: { name: "" } };
    await assert.rejects(applySet(client, [], unnamed), {
      message: /"name" must be a string that is not empty: received ""$/,
    });
    const far = {
      owner: OWNER,
      inventory: { name: "a", namespace: "nowhere" },
    };
    await assert.rejects(applySet(client, [configMap("z")], far), {
      message:
        /^Cannot keep the inventory of the set in ConfigMap nowhere\/a: .*namespaces? "nowhere" not found/,
    });
    assert.equal(
      await client.find(ConfigMap, { namespace: "default", name: "z" }),
      undefined,
    );
  },
);
