import assert from "node:assert/strict";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type {
  CredentialSource,
  Logger,
  Transport,
} from "@coracle/operator/client";
import {
  createAuthority,
  issueCertificate,
} from "../../core/admission/certificates.ts";
import { ApiServer } from "../../dev/apiserver/server.ts";
import { Informer } from "../../core/cache/informer/informer.ts";
import { Client } from "../../core/client/client.ts";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";
import { Lease } from "../../core/kinds/coordination_v1.ts";
import { ConfigMap } from "../../core/kinds/core_v1.ts";
import { jsonLogger } from "../../core/logger.ts";
import { Operator } from "../../core/operator/operator.ts";
import { VirtualClock } from "../../dev/testing/virtual_clock.ts";
import { inTime } from "../support/in_time.ts";
import {
  type Effect,
  FaultGate,
  type Operation,
  operationOf,
} from "./fault_gate.ts";
import { type ConnectionFault, type FaultRow, OLDER } from "./fault_rows.ts";

/** Real time that a cell may take: a limit for a stuck test. */
const CELL_LIMIT_MS = 45_000;
/** Most requests of the operation in a cell. */
const MAX_REQUESTS = 25;
const NAMESPACE = "default";
const ROTATING: CredentialSource = {
  current: () => Promise.resolve({ token: "old" }),
  refresh: () => Promise.resolve({ token: "new" }),
};

/** Clock whose wall time can be set. */
class JumpingClock extends VirtualClock {
  shift = 0;

  override wallTime(): number {
    return super.wallTime() + this.shift;
  }
}

/** Everything that a cell needs. */
interface Cell {
  readonly row: FaultRow;
  readonly operation: Operation;
  readonly server: ApiServer;
  readonly gate: FaultGate;
  readonly clock: JumpingClock;
  readonly client: Client;
  readonly logger: Logger;
  readonly lines: string[];
  /** Lets the fault happen to the next requests; each is a change as well. */
  arm(): void;
  /** Advances time until a condition holds. */
  until(
    what: string,
    condition: () => boolean | Promise<boolean>,
  ): Promise<void>;
}

/**
 * Runs one cell of the matrix: an operation meets a fault, and afterwards
 * nothing is missing, requests are bounded and the cause is named.
 *
 * @throws {Error} If one of these does not hold.
 */
export async function runCell(
  row: FaultRow,
  operation: Operation,
): Promise<void> {
  const effect = row.effects[operation];
  if (typeof effect === "string") throw new Error(`No such cell: ${effect}`);
  const server = await ApiServer.start({ port: false, seed: 1 });
  const gate = await FaultGate.start(server);
  const clock = new JumpingClock();
  const lines: string[] = [];
  const logger = jsonLogger({
    level: "debug",
    write: (line) => void lines.push(line),
  });
  const connectionFault = typeof effect === "object" && "connection" in effect
    ? effect.connection
    : undefined;
  const transport = await CellTransport.open(connectionFault, gate);
  clock.waitFor(() => gate.quiet(() => transport.waiting));
  const client = new Client(
    row.id === "401"
      ? { server: gate.url, credentials: ROTATING }
      : { transport },
    { clock, logger, random: () => 0.5 },
  );
  let changes = 0;
  const onHit = () => {
    changes++;
    // Behind the answer to the request that is hit.
    change(server, changes).catch((error) =>
      logger.error("Not changed", { error })
    );
  };
  let older = "";
  const cell: Cell = {
    row,
    operation,
    server,
    gate,
    clock,
    client,
    logger,
    lines,
    arm() {
      const { times } = row;
      if (connectionFault) transport.arm(operation, times, onHit);
      else if (typeof effect === "function") {
        const given: Effect = (exchange) =>
          effect({
            ...exchange,
            forward: ({ target = exchange.target, ...options } = {}) =>
              exchange.forward({
                ...options,
                target: target.replace(OLDER, older),
              }),
          });
        gate.arm(operation, given, { times, onHit });
      } else {
        const jump = (effect as { clockJump: number }).clockJump;
        gate.arm(operation, (exchange) => {
          clock.shift += jump;
          return exchange.forward();
        }, { times, onHit });
      }
    },
    until: (what, condition) =>
      inTime(
        what,
        clock.runUntil(condition, { limit: 7_200_000, idleTurns: 4_000 }),
        CELL_LIMIT_MS,
      ),
  };
  try {
    for (const name of ["a", "b", "c", "d", "e"]) {
      const { metadata } = await server.client.create(ConfigMap, {
        metadata: { namespace: NAMESPACE, name },
        data: { value: "first" },
      });
      if (name === "b") older = metadata.resourceVersion ?? "";
    }
    if (operation === "write" || operation === "lease") await runOperator(cell);
    else await runInformer(cell);
  } catch (error) {
    const last = lines.slice(-30).join("\n");
    const counts = JSON.stringify(gate.counts);
    throw new Error(`${(error as Error).message}\n${counts}\n${last}`, {
      cause: error,
    });
  } finally {
    await client.close();
    await transport.close();
    await gate.stop();
    await server.stop();
  }
  const { counts, hits } = gate;
  assert.ok(hits >= leastHits(row, operation), "requests have met the fault");
  const most = row.maxRequests ?? MAX_REQUESTS;
  assert.ok(
    counts[operation] <= most,
    `${counts[operation]} requests, at most ${most} are expected`,
  );
  if (row.cause !== undefined && !row.unnamed?.includes(operation)) {
    const causes = lines.flatMap((line) => {
      const { error = [], status = [] } = JSON.parse(line);
      return [error, status].flat();
    });
    assert.match(causes.join("\n"), row.cause, "the cause is named");
  }
}

/**
 * Number of requests that meet a fault in any case: after a stream of the initial
 * state has failed, an informer lists instead.
 */
function leastHits({ times }: FaultRow, operation: Operation): number {
  return operation === "watchList" ? 1 : times;
}

/** Changes, removes and creates an object, as another client does. */
async function change(server: ApiServer, count: number): Promise<void> {
  const at = (name: string) => ({ namespace: NAMESPACE, name });
  await server.client.patch(ConfigMap, at("a"), {
    data: { value: `change ${count}` },
  });
  await server.client.create(ConfigMap, { metadata: at(`new-${count}`) });
  const gone = ["c", "d", "e"][count - 1];
  if (gone !== undefined) await server.client.delete(ConfigMap, at(gone));
}

async function runInformer(cell: Cell): Promise<void> {
  const { client, clock, gate, logger, operation, row, server } = cell;
  const informer = new Informer(client, ConfigMap, {
    clock,
    logger,
    random: () => 0.5,
    namespaces: [NAMESPACE],
    reconnect: {
      watchList: operation === "watchList",
      pageSize: operation === "pages" ? 2 : 500,
    },
  });
  /** The state that the events add up to. */
  const followed = new Map<string, string>();
  informer.addHandler(({ type, object }) => {
    const { name, resourceVersion } = object.metadata;
    if (type === "deleted") followed.delete(name);
    else followed.set(name, resourceVersion ?? "");
  });
  try {
    cell.arm();
    informer.start();
    await cell.until(
      "the fault has happened",
      () => gate.hits >= leastHits(row, operation),
    );
    const equal = async () => {
      const [health] = informer.health().watches;
      if (health?.state !== "watching") return false;
      const expected = await stateOf(server);
      return expected === sorted(followed) &&
        expected ===
          sorted(
            new Map(
              informer.list().map(({ metadata }) => [
                metadata.name,
                metadata.resourceVersion ?? "",
              ]),
            ),
          );
    };
    await cell.until("the cache and its events equal the server", equal);
    await change(server, 9);
    await cell.until("a later change arrives", equal);
    for (const { lastError } of informer.health().watches) {
      if (lastError !== undefined) {
        logger.info("Health", { error: lastError.message });
      }
    }
  } finally {
    await informer.stop();
  }
}

async function runOperator(cell: Cell): Promise<void> {
  const { client, clock, gate, logger, operation, row, server } = cell;
  const elects = operation === "lease";
  const operator = new Operator({
    client,
    clock,
    logger,
    random: () => 0.5,
    namespaces: [NAMESPACE],
    ...(elects && {
      leaderElection: { name: "lock", namespace: NAMESPACE, identity: "one" },
    }),
  });
  operator.register(ConfigMap, {
    async reconcile({ metadata, data }, ctx) {
      if (!/^(a|b|new-\d)$/.test(metadata.name)) return;
      await ctx.apply(ConfigMap, {
        metadata: { name: `out-${metadata.name}`, namespace: NAMESPACE },
        data: { value: data?.["value"] ?? "" },
      });
    },
  });
  const at = (name: string) => ({ namespace: NAMESPACE, name });
  /** Whether each object has its copy. */
  const equal = async () => {
    const { items } = await server.client.list(ConfigMap, {
      namespace: NAMESPACE,
    });
    const values = new Map(
      items.map(({ metadata, data }) => [metadata.name, data?.["value"] ?? ""]),
    );
    return [...values].every(([name, value]) =>
      !/^(a|b|new-\d)$/.test(name) || values.get(`out-${name}`) === value
    );
  };
  try {
    if (elects) {
      await inTime("a start", advancing(clock, operator.start()));
      await cell.until("the first runs", equal);
      cell.arm();
    } else {
      cell.arm();
      await inTime("a start", advancing(clock, operator.start()));
    }
    await cell.until(
      "the fault has happened",
      () => gate.hits >= leastHits(row, operation),
    );
    await cell.until("each object has its copy", equal);
    if (elects) {
      const renewed = async () =>
        (await server.client.get(Lease, at("lock"))).metadata.resourceVersion;
      const before = await renewed();
      await cell.until(
        "the lease is renewed",
        async () => await renewed() !== before,
      );
      const { spec } = await server.client.get(Lease, at("lock"));
      assert.equal(spec?.holderIdentity, "one");
    }
    await change(server, 9);
    await cell.until("a later change is handled", equal);
  } finally {
    await advancing(clock, operator.stop());
  }
}

/** Advances time until a promise is settled. */
async function advancing<T>(
  clock: VirtualClock,
  promise: Promise<T>,
): Promise<T> {
  let isSettled = false;
  const settle = () => {
    isSettled = true;
  };
  promise.then(settle, settle);
  await clock.runUntil(() => isSettled, { idleTurns: 4_000 });
  return await promise;
}

async function stateOf(server: ApiServer): Promise<string> {
  const { items } = await server.client.list(ConfigMap, {
    namespace: NAMESPACE,
  });
  return sorted(
    new Map(
      items.map(({ metadata }) => [
        metadata.name,
        metadata.resourceVersion ?? "",
      ]),
    ),
  );
}

function sorted(versions: ReadonlyMap<string, string>): string {
  return [...versions].map(([name, version]) => `${name}=${version}`).sort()
    .join(" ");
}

/**
 * Transport that counts the requests without an answer, and whose first requests
 * of an operation fail to connect.
 */
class CellTransport implements Transport {
  readonly #good: Transport;
  readonly #bad: Transport;
  readonly #gate: FaultGate;
  readonly #foreign: Server | undefined;
  /** Number of requests without an answer. */
  waiting = 0;
  #operation: Operation | undefined;
  #left = 0;
  #onHit: () => void = () => {};

  private constructor(
    parts: {
      readonly good: Transport;
      readonly bad: Transport;
      readonly gate: FaultGate;
      readonly foreign: Server | undefined;
    },
  ) {
    this.#good = parts.good;
    this.#bad = parts.bad;
    this.#gate = parts.gate;
    this.#foreign = parts.foreign;
  }

  static async open(
    fault: ConnectionFault | undefined,
    gate: FaultGate,
  ): Promise<CellTransport> {
    const good = await openHttpTransport({ server: gate.url });
    if (fault === undefined) {
      return new CellTransport({ good, bad: good, gate, foreign: undefined });
    }
    if (fault !== "authority") {
      const bad = await openHttpTransport(
        fault === "dns" ? { server: "http://api.invalid:6443" } : {
          server: "https://api.invalid:6443",
          // Nothing listens there.
          proxyUrl: "http://127.0.0.1:1",
        },
      );
      return new CellTransport({ good, bad, gate, foreign: undefined });
    }
    const pair = issueCertificate(createAuthority({ commonName: "foreign" }), {
      commonName: "server",
      usage: "server",
      hosts: ["127.0.0.1"],
    });
    const foreign = createServer({ key: pair.key, cert: pair.certificate });
    foreign.on("tlsClientError", () => {});
    await new Promise<void>((resolve) =>
      foreign.listen(0, "127.0.0.1", resolve)
    );
    const bad = await openHttpTransport({
      server: `https://127.0.0.1:${(foreign.address() as AddressInfo).port}`,
      certificateAuthority: createAuthority({ commonName: "own" }).certificate,
    });
    return new CellTransport({ good, bad, gate, foreign });
  }

  arm(operation: Operation, times: number, onHit: () => void): void {
    this.#operation = operation;
    this.#left = times;
    this.#onHit = onHit;
  }

  async send(
    request: Parameters<Transport["send"]>[0],
  ): Promise<Awaited<ReturnType<Transport["send"]>>> {
    this.waiting++;
    try {
      return await this.#choose(request).send(request);
    } finally {
      this.waiting--;
    }
  }

  /** Transport of a request. */
  #choose(request: Parameters<Transport["send"]>[0]): Transport {
    const operation = operationOf(request.method, request.path);
    if (
      this.#left === 0 || operation === undefined ||
      operation !== this.#operation
    ) {
      return this.#good;
    }
    this.#left--;
    this.#gate.count(operation);
    this.#onHit();
    return this.#bad;
  }

  async close(): Promise<void> {
    await this.#good.close();
    await this.#bad.close();
    const foreign = this.#foreign;
    if (foreign === undefined) return;
    await new Promise<void>((resolve) => {
      foreign.close(() => resolve());
      foreign.closeAllConnections();
    });
  }
}
