import type { Client, InformerOptions } from "@coracle/operator/client";
import { Informer } from "../../core/cache/informer/informer.ts";
import { VirtualClock } from "../../dev/testing/virtual_clock.ts";
import { stateOf, Widget } from "./fake_watch_call.ts";
import { FakeWatchServer } from "./fake_watch_server.ts";
import { LeakGuard } from "./leaks.ts";
import { until } from "./until.ts";

/** Event in the form that tests compare. */
export type EventLine = `${"added" | "updated" | "deleted"} ${string}`;

/**
 * An informer against a {@linkcode FakeWatchServer}, on a clock that only moves
 * where the test says so, or while the informer waits to try again.
 */
export interface InformerCase {
  readonly server: FakeWatchServer;
  readonly client: Client;
  readonly clock: VirtualClock;
  readonly informer: Informer<Widget>;
  /** Events of the handler: type, key and flags. */
  readonly events: EventLine[];
  /** Starts the informer and waits until it has synced. */
  sync(): Promise<void>;
  /** Waits for a condition; pauses after failures take no time. */
  until(what: string, condition: () => boolean): Promise<void>;
  /** Waits until the cache equals the server's objects and a watch is open. */
  settled(): Promise<void>;
}

/** Runs a test with an informer, and stops everything after it. */
export async function withInformer(
  test: (parts: InformerCase) => Promise<void>,
  options: InformerOptions = {},
): Promise<void> {
  const server = await FakeWatchServer.start();
  const guard = new LeakGuard();
  const clock = new VirtualClock();
  const client = await server.client();
  const informer = new Informer(client, Widget, {
    clock,
    random: () => 0.5,
    ...options,
  });
  const events: EventLine[] = [];
  informer.addHandler((event) => {
    const flags = [
      event.initial && "initial",
      event.relist && "relist",
      event.finalStateUnknown && "unknown",
    ].filter((flag) => flag !== false);
    events.push(
      `${event.type} ${[event.key, ...flags].join(" ")}` as EventLine,
    );
  });
  const parts: InformerCase = {
    server,
    client,
    clock,
    informer,
    events,
    async sync() {
      informer.start();
      await parts.settled();
    },
    until: async (what, condition) => {
      await until(what, async () => {
        if (condition()) return true;
        const { watches } = informer.health();
        if (watches.some(({ state }) => state === "waiting")) {
          await toNextTimer(clock);
        }
        return condition();
      }, { every: 1 });
    },
    settled: () =>
      parts.until(
        "the cache shows what the server has",
        () =>
          informer.hasSynced &&
          informer.health().watches.every(({ state }) =>
            state === "watching"
          ) &&
          JSON.stringify(stateOf(informer.list())) ===
            JSON.stringify(server.state),
      ),
  };
  try {
    await test(parts);
  } finally {
    await informer.stop();
    try {
      guard.check(clock);
    } finally {
      await server.stop();
    }
  }
}

/** Moves a clock to its next timer. */
export async function toNextTimer(clock: VirtualClock): Promise<void> {
  if (clock.nextDue === undefined) return;
  await clock.advance(Math.max(clock.nextDue - clock.now(), 0));
}
