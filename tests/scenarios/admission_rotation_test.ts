import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { withTestCluster } from "@coracle/dev";
import {
  type Clock,
  Operator,
  silentLogger,
  systemClock,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { ROTATION_TIMES } from "../../core/admission/certificate_rotation.ts";
import {
  SECRET,
  SecretCertificates,
} from "../../core/admission/served_certificates.ts";

const DAY_MS = 24 * 3_600_000;

/** Interval of the checks of webhooks. */
const CHECK_MS = 60_000;

test(
  "replicas that make an authority at the same time agree on one",
  withTestCluster({}, async ({ client, namespace }) => {
    let now = Date.now();
    const replicas = Array.from({ length: 3 }, () =>
      new SecretCertificates({
        client,
        key: { namespace, name: "agreed" },
        hosts: ["127.0.0.1"],
        times: ROTATION_TIMES,
        clock: { ...systemClock, wallTime: () => now },
        log: silentLogger,
        isRegistered: () => Promise.resolve(true),
      }));
    const { signal } = new AbortController();
    const served = [];
    // The first, the next that waits, and the one that signs after it.
    for (const days of [0, 250, 2]) {
      now += days * DAY_MS;
      await Promise.all(replicas.map((one) => one.read(signal)));
      const all = await Promise.all(replicas.map((one) => one.read(signal)));
      for (const one of all) assert.deepEqual(one, all[0]);
      served.push(all[0]);
    }
    const [first, both, next] = served;
    assert.equal(both?.bundle.split("BEGIN").length, 3);
    assert.notEqual(next?.serving.certificate, first?.serving.certificate);
    assert.equal(next?.bundle.split("BEGIN").length, 3);
  }),
);

test(
  "a new certificate authority follows under load without a failed request",
  withTestCluster({ cluster: "embedded" }, async (cluster) => {
    const { client, namespace } = cluster;
    let offset = -250 * DAY_MS;
    const clock: Clock = {
      ...systemClock,
      wallTime: () => Date.now() + offset,
      setTimer: (callback, delay) =>
        systemClock.setTimer(callback, delay === CHECK_MS ? 20 : delay),
    };
    const key = { namespace, name: "webhooks" };
    const certificates = new SecretCertificates({
      client,
      key,
      hosts: ["127.0.0.1"],
      times: ROTATION_TIMES,
      clock,
      log: silentLogger,
      isRegistered: () => Promise.resolve(false),
    });
    const { signal } = new AbortController();
    // Made long ago, followed by a new authority today, which waits.
    await certificates.read(signal);
    offset = 0;
    await certificates.read(signal);
    await certificates.read(signal);
    const state = async () => {
      const { data = {} } = await client.get(SECRET, key);
      const text = (name: string) =>
        Buffer.from(data[name] ?? "", "base64").toString();
      return {
        certificate: text("tls.crt"),
        trusted: text("ca.crt").split("BEGIN").length - 1,
      };
    };
    const first = await state();
    assert.equal(first.trusted, 2);
    const operator = new Operator({
      client: cluster.operatorClient,
      logger: cluster.logger,
      clock,
      webhooks: {
        port: 0,
        host: "127.0.0.1",
        url: "https://127.0.0.1:0",
        name: key.name,
      },
    });
    let validated = 0;
    operator.admit(ConfigMap, { validate: () => void validated++ }, {
      failurePolicy: "Fail",
    });
    await operator.start();
    let isDone = false;
    const failures: unknown[] = [];
    const load = Array.from({ length: 4 }, async (_, index) => {
      for (let turn = 0; !isDone; turn++) {
        const metadata = { namespace, name: `a-${index}-${turn}` };
        await client.create(ConfigMap, { metadata }, { dryRun: true })
          .catch((error: unknown) => {
            failures.push(error);
            isDone = true;
          });
      }
    });
    offset = ROTATION_TIMES.overlap + 1_000;
    await cluster.until(async () =>
      isDone || (await state()).certificate !== first.certificate
    );
    const days = () =>
      ((operator.health().webhooks?.certificateExpires ?? 0) -
        clock.wallTime()) / DAY_MS;
    await cluster.until(() => days() > 0);
    const promoted = validated;
    await cluster.until(() => validated > promoted + 50);
    offset += ROTATION_TIMES.farewell;
    await cluster.until(async () => (await state()).trusted === 1);
    const forgotten = validated;
    await cluster.until(() => validated > forgotten + 50);
    isDone = true;
    await Promise.all(load);
    await operator.stop();
    assert.deepEqual(failures, []);
  }),
);
