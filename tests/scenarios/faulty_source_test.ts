import assert from "node:assert/strict";
import type { EventSource } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { byLabel, watch } from "@coracle/operator/sources";
import { Gadget, scenario } from "../support/operator_fixture.ts";

/** Source without effects, with the given methods replaced. */
function source(
  name: string,
  methods: Partial<EventSource<Gadget>> = {},
): EventSource<Gadget> {
  return {
    name,
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    ...methods,
  };
}

scenario(
  "A source that throws for a primary prevents no run",
  async (fixture) => {
    const followed = new Set<string>();
    const runs: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(gadget) {
        runs.push(gadget.metadata.name);
      },
    }, {
      sources: [
        source("throws", {
          onPrimary() {
            throw new Error("As asked");
          },
        }),
        source("rejects", {
          onPrimary: () => Promise.reject(new Error("As asked")),
        }),
        source("follows", {
          onPrimary: ({ key }) => void followed.add(key.name),
        }),
      ],
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    assert.deepEqual([...followed], ["a"]);
    const told = fixture.log.filter(({ message }) =>
      message === "An event source failed"
    );
    // They hear of the object, and of the finalizer that a run has added.
    const sources = new Set(told.map(({ fields }) => fields["source"]));
    assert.deepEqual([...sources], ["throws", "rejects"]);
  },
);

scenario(
  "A source whose health check throws is unhealthy",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} }, {
      sources: [source("mute", {
        health() {
          throw new Error("As asked");
        },
      })],
    });
    await fixture.start(operator);
    const [controller] = operator.health().controllers;
    assert.equal(controller?.healthy, false);
    assert.match(
      controller?.sources.get("mute")?.message ?? "",
      /Error: As asked/,
    );
  },
);

scenario(
  "Sources that do not stop are abandoned and reported",
  async (fixture) => {
    const stopped: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} }, {
      sources: [
        source("good", {
          stop() {
            stopped.push("good");
            return Promise.resolve();
          },
        }),
        source("throws", {
          stop() {
            throw new Error("As asked");
          },
        }),
        source("hangs", { stop: () => new Promise(() => {}) }),
      ],
    });
    await fixture.start(operator);
    await fixture.done(operator.stop());
    assert.deepEqual(stopped, ["good"]);
    const told = fixture.log.filter(({ message }) =>
      message === "Cannot stop an event source, it is left behind"
    );
    assert.deepEqual(told.map(({ fields }) => fields["source"]), [
      "hangs",
      "throws",
    ]);
  },
);

scenario(
  "A source whose addition failed can be added again",
  async (fixture) => {
    const operator = fixture.operator();
    const controller = operator.register(Gadget, { reconcile() {} });
    await fixture.start(operator);
    let starts = 0;
    const added = source("late", {
      start() {
        starts++;
        return starts === 1
          ? Promise.reject(new Error("As asked"))
          : Promise.resolve();
      },
    });
    await assert.rejects(fixture.done(controller.addSource(added)), /As asked/);
    assert.equal(await fixture.done(controller.addSource(added)), added);
    assert.equal(starts, 2);
  },
);

scenario(
  "A source filter that throws accepts the event and is reported",
  async (fixture) => {
    // On a real cluster others have ConfigMaps, too.
    const key = { namespace: "default", name: "a" };
    let runs = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {
        runs++;
      },
    }, {
      sources: [watch<Gadget, ConfigMap>(ConfigMap, {
        mapper: byLabel("gadget"),
        filters: {
          update({ metadata: { namespace, name } }) {
            if (namespace !== key.namespace || name !== key.name) return true;
            throw new Error("As asked");
          },
        },
      })],
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => runs === 1);
    await fixture.client.create(ConfigMap, {
      metadata: { ...key, labels: { gadget: "a" } },
    });
    await fixture.until(() => runs === 2);
    await fixture.client.patch(ConfigMap, key, { data: { a: "1" } });
    await fixture.until(() => runs === 3);
    const told = fixture.log.filter(({ message }) =>
      message === "Cannot filter an event"
    );
    assert.deepEqual(told.map(({ fields }) => fields["source"]), [
      "v1 ConfigMap",
    ]);
  },
);
