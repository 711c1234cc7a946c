import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { resolveOptions } from "../../core/api/options.ts";
import { RECONNECT_OPTIONS } from "../../core/cache/watch/reconnect.ts";
import { BackOff } from "../../core/pace.ts";

function make(random: () => number): { clock: VirtualClock; backOff: BackOff } {
  const clock = new VirtualClock();
  const settings = resolveOptions({}, RECONNECT_OPTIONS);
  const backOff = new BackOff(settings, clock, random);
  return { clock, backOff };
}

test("BackOff doubles its pauses up to a cap", () => {
  const { backOff } = make(() => 0);
  const pauses = Array.from({ length: 8 }, () => backOff.next());
  assert.deepEqual(
    pauses,
    [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000],
  );
});

test("BackOff lengthens a pause by up to itself", () => {
  const { backOff } = make(() => 0.999);
  assert.ok(backOff.next() > 1_590);
  assert.ok(backOff.next() < 3_200);
});

test("BackOff starts again from the first pause after a good time", async () => {
  const { clock, backOff } = make(() => 0);
  backOff.next();
  const pause = backOff.next();
  await clock.advance(pause + 119_000);
  assert.equal(backOff.next(), 3_200);
  await clock.advance(3_200 + 120_000);
  assert.equal(backOff.next(), 800);
});

test("BackOff waits as long as the server asks, and a little longer", () => {
  const { backOff } = make(() => 0.5);
  assert.equal(backOff.next(7_000), 7_350);
  assert.equal(backOff.next(1), 2_400);
});

test("BackOff returns short pauses without growing", () => {
  const { backOff } = make(() => 0);
  assert.equal(backOff.short(), 800);
  assert.equal(backOff.short(), 800);
  assert.equal(backOff.next(), 800);
});

test("BackOff takes a pause of the server that is one, up to five minutes", () => {
  for (
    const [asked, expected] of [
      [5_000, 5_000],
      [300_000, 300_000],
      [300_001, 300_000],
      [Infinity, 300_000],
      [NaN, 800],
      [-5, 800],
    ]
  ) {
    const { backOff } = make(() => 0);
    assert.equal(backOff.next(asked), expected, `${asked}`);
  }
});
