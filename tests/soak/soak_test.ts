import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import {
  Client,
  MetricsRegistry,
  type Transport,
} from "@coracle/operator/core";
import { installCrd } from "@coracle/operator/crd";
import { Buoy } from "./buoy.ts";
import { Churn } from "./churn.ts";
import { Random } from "./random.ts";
import { metricReader, SoakedOperator } from "./soaked_operator.ts";
import { Weather } from "./weather.ts";

/** Transport that counts its requests. */
class CountingTransport implements Transport {
  readonly #transport: Transport;
  count = 0;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  readonly send: Transport["send"] = (request) => {
    this.count++;
    return this.#transport.send(request);
  };

  close(): Promise<void> {
    return Promise.resolve();
  }
}

test(
  "Two minutes of changes and random faults lose nothing, and metrics stay right",
  async () => {
    const clock = new VirtualClock({ quietTurns: 8 });
    const random = new Random(1);
    const server = await ApiServer.start({ port: false, clock, seed: 1 });
    const installing = installCrd(server.client, Buoy, { clock });
    await clock.advance(5_000);
    await installing;
    const metrics = new MetricsRegistry();
    const transport = new CountingTransport(server.transport);
    const client = new Client({ transport, namespace: "default" }, {
      clock,
      metrics,
      random: random.next,
    });
    const options = { server, client: server.client, clock, random };
    const churn = new Churn({ ...options, objects: 100, changesPerSecond: 4 });
    const weather = new Weather({ ...options, period: 4_000 });
    const soaked = new SoakedOperator({ client, metrics, clock, random });
    const ending = new AbortController();
    await churn.fill();
    const started = soaked.operator.start();
    await clock.advance(5_000);
    await started;
    const going = Promise.all([
      churn.run(ending.signal),
      weather.run(ending.signal),
    ]);
    await clock.advance(120_000);
    ending.abort();
    await clock.advance(5_000);
    await going;
    await clock.runUntil(async () =>
      await soaked.undone(server.client) === undefined
    );
    await soaked.check(server.client);
    const read = metricReader(soaked.operator.metrics());
    assert.equal(read("coracle_client_requests_total"), transport.count);
    assert.ok(churn.changes > 300 && weather.faults > 10);
    const stopped = soaked.operator.stop();
    await clock.advance(5_000);
    await stopped;
    await server.stop();
    assert.equal(clock.pendingTimers, 0, "no timer is left");
  },
);
