import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../../../core/client/client.ts";
import { Fence } from "../../../core/operator/fence.ts";
import { Lease } from "../../../core/operator/lease_lock.ts";
import { VirtualClock } from "../../../core/virtual_clock.ts";
import { ScriptedStream } from "../../support/scripted_stream.ts";
import { ScriptedTransport } from "../../support/scripted_transport.ts";

const KEY = { namespace: "default", name: "a" };

/** A fence before a server that answers when the test wants it to. */
class FenceCase {
  readonly clock: VirtualClock = new VirtualClock();
  readonly server: ScriptedTransport = new ScriptedTransport(({ signal }) =>
    new Promise((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
      this.asked.push(() => resolve({ body: { metadata: KEY } }));
    })
  );
  readonly fence: Fence;
  /** What the server was asked and has not answered. */
  readonly asked: (() => void)[] = [];
  holds = true;
  #term = new AbortController();

  constructor() {
    const mandate = {
      isHeld: () => this.holds,
      get holds(): boolean {
        return this.isHeld();
      },
      signal: this.#term.signal,
      lack: "does not lead",
    };
    const client = new Client({ transport: this.server }, {
      clock: this.clock,
    });
    this.fence = new Fence({ client, mandate, clock: this.clock });
  }

  loseMandate(): void {
    this.holds = false;
    this.#term.abort(new Error("It leads no more"));
  }

  /** Writes; tells how that ended. */
  write(signal?: AbortSignal): { ended: string | undefined } {
    const result: { ended: string | undefined } = { ended: undefined };
    this.fence.client.patch(Lease, KEY, {}, { signal }).then(
      () => result.ended = "well",
      (error: unknown) => result.ended = String(error),
    );
    return result;
  }

  /** Whether no write is under way. */
  async isSettled(): Promise<boolean> {
    let settled = false;
    void this.fence.settled().then(() => settled = true);
    await this.clock.settle();
    return settled;
  }
}

test("Fence lets reads through always, and writes within the mandate", async () => {
  const one = new FenceCase();
  const first = one.write();
  await one.clock.settle();
  one.asked.pop()?.();
  await one.clock.settle();
  assert.equal(first.ended, "well");
  one.holds = false;
  const second = one.write();
  const read = one.fence.client.get(Lease, KEY);
  await one.clock.settle();
  assert.match(second.ended ?? "", /does not lead, or not for certain/);
  assert.equal(one.asked.length, 1);
  one.asked.pop()?.();
  await read;
});

test("Fence opens streams into pods within the mandate only", async () => {
  const one = new FenceCase();
  const stream = new ScriptedStream();
  one.server.stream = () => stream;
  const options = { command: ["date"] };
  await one.fence.client.exec(KEY, options);
  assert.equal(one.server.streamRequests.length, 1);
  assert.equal(await one.isSettled(), true, "it is open");
  one.holds = false;
  await assert.rejects(
    one.fence.client.exec(KEY, options),
    /Cannot run "date" in Pod default\/a: this replica does not lead/,
  );
  assert.equal(one.server.streamRequests.length, 1);
  stream.messages.end();
});

test("Fence asks for the mandate again after a wait for another attempt", async () => {
  const one = new FenceCase();
  one.server.script = () => ({ status: 429, headers: { "retry-after": "1" } });
  const write = one.write();
  await one.clock.settle();
  one.holds = false;
  await one.clock.advance(2_000);
  assert.match(write.ended ?? "", /does not lead, or not for certain/);
  assert.equal(one.server.requests.length, 1);
});

test("Fence ends the writes under way with the mandate", async () => {
  const one = new FenceCase();
  const write = one.write();
  await one.clock.settle();
  one.loseMandate();
  await one.clock.settle();
  assert.match(write.ended ?? "", /leads no more/);
  assert.equal(await one.isSettled(), true);
});

test("Fence waits for the answer to a write whose run was aborted", async () => {
  const one = new FenceCase();
  const run = new AbortController();
  const write = one.write(run.signal);
  await one.clock.settle();
  run.abort(new Error("The run was aborted"));
  await one.clock.settle();
  assert.match(write.ended ?? "", /The run was aborted/);
  assert.equal(await one.isSettled(), false, "it may arrive still");
  one.asked.pop()?.();
  assert.equal(await one.isSettled(), true);
  assert.equal(one.server.cancelled, 1, "nobody reads the answer");
  assert.equal(one.clock.pendingTimers, 0);
});

test("Fence gives up a write of an aborted run that gets no answer", async () => {
  const one = new FenceCase();
  const run = new AbortController();
  one.write(run.signal);
  await one.clock.settle();
  run.abort(new Error("The run was aborted"));
  await one.clock.advance(4_900);
  assert.equal(await one.isSettled(), false);
  await one.clock.advance(100);
  assert.equal(await one.isSettled(), true);
});

test("Fence sends nothing for a run that was aborted before", async () => {
  const one = new FenceCase();
  const write = one.write(AbortSignal.abort(new Error("Too late")));
  await one.clock.settle();
  assert.match(write.ended ?? "", /Too late/);
  assert.equal(one.asked.length, 0);
});
