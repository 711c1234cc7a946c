import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "@coracle/operator/kinds";
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
  const other = new EventBuffer<KubernetesObject>();
  other.push(event);
  await other.return();
  assert.equal((await other.next()).done, true, "what waited is dropped");
});

/** An event that shows in its text what it was merged of. */
function eventOf(type: string, text: string, key = "a"): typeof event {
  return {
    key,
    type,
    text,
    detach: () => eventOf(type, `${text}!`, key),
    mergedWith: (later: { readonly type: string; readonly text: string }) =>
      eventOf(
        later.type === "deleted" ? "deleted" : type,
        `${text}+${later.text}`,
        key,
      ),
  } as unknown as typeof event;
}

/** Types and texts of the events that wait in a buffer. */
async function waitingIn(
  buffer: EventBuffer<KubernetesObject>,
): Promise<string[]> {
  const found: string[] = [];
  const end = eventOf("updated", "end", "end");
  buffer.push(end);
  for (;;) {
    const { value } = await buffer.next();
    if (value.key === "end") return found;
    found.push(`${value.type} ${value.text}`);
  }
}

test("EventBuffer merges the waiting events of an object, but no deletion away", async () => {
  for (
    const [types, expected] of [
      ["added updated", ["added 1!+2"]],
      ["added deleted", []],
      ["added updated deleted", []],
      ["added deleted added", ["added 3!"]],
      ["updated updated", ["updated 1!+2"]],
      ["updated deleted", ["deleted 1!+2"]],
      ["deleted added", ["deleted 1!", "added 2!"]],
      ["deleted added updated", ["deleted 1!", "added 2!+3"]],
      ["deleted added deleted", ["deleted 1!"]],
      ["updated deleted added", ["deleted 1!+2", "added 3!"]],
    ] as const
  ) {
    const buffer = new EventBuffer<KubernetesObject>();
    for (const [index, type] of types.split(" ").entries()) {
      buffer.push(eventOf(type, `${index + 1}`));
    }
    assert.deepEqual(await waitingIn(buffer), expected, types);
  }
});

test("EventBuffer gives a copy of an event to a loop that waits", async () => {
  const buffer = new EventBuffer<KubernetesObject>();
  const waiting = buffer.next();
  buffer.push(eventOf("added", "1"));
  const { value } = await waiting;
  assert.equal((value as unknown as { text: string }).text, "1!");
  buffer.push(eventOf("updated", "2", "b"));
  buffer.push(eventOf("updated", "3"));
  assert.deepEqual(await waitingIn(buffer), ["updated 2!", "updated 3!"]);
});
