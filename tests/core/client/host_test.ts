import assert from "node:assert/strict";
import { hostname } from "node:os";
import { test } from "node:test";
import { systemClock } from "@coracle/operator/client";
import { host, replaceHost } from "../../../core/client/host.ts";

test("Host is that of the process, with the parts that tools replace", () => {
  const restore = replaceHost({ hostname: () => "simulated" });
  try {
    const { hostname, clock, servesProbes, openTransport } = host();
    assert.equal(hostname(), "simulated");
    assert.equal(clock(), systemClock);
    assert.equal(servesProbes, true);
    assert.equal(openTransport, undefined);
  } finally {
    restore();
  }
  assert.equal(host().hostname(), hostname());
});

test("Replacements of the host are undone in any order", () => {
  const first = replaceHost({ hostname: () => "first", servesProbes: false });
  const second = replaceHost({ hostname: () => "second" });
  assert.equal(host().hostname(), "second");
  first();
  assert.equal(host().hostname(), "second");
  assert.equal(host().servesProbes, true);
  second();
  second();
  assert.equal(host().hostname(), hostname());
});
