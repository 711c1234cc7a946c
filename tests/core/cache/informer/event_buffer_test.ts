import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "../../../../core/api/object.ts";
import type { CurrentEvent } from "../../../../core/cache/informer/cache_event.ts";
import { EventBuffer } from "../../../../core/cache/informer/event_buffer.ts";

const event = {
  key: "default/a",
  type: "added",
  detach: () => event,
} as unknown as CurrentEvent<KubernetesObject>;

test("EventBuffer that has ended takes no event, and ends once", async () => {
  const buffer = new EventBuffer<KubernetesObject>();
  let ends = 0;
  buffer.onEnd = () => ends++;
  const waiting = buffer.next();
  await buffer.return();
  await buffer.return();
  assert.equal(ends, 1);
  assert.equal((await waiting).done, true);
  buffer.push(event);
  assert.equal((await buffer.next()).done, true);
});
