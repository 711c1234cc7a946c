import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { BodyCopy } from "../../../../core/cache/store/bodies.ts";
import { usableDictionary } from "../../../../core/cache/store/page_codec.ts";
import { PageStore } from "../../../../core/cache/store/tiers.ts";
import { rangeText, wholeRange } from "../../../../core/json/byte_range.ts";

/** Body of an object of this number and generation. */
const body = (slot: number, generation: number) =>
  wholeRange(`{"slot":${slot},"generation":${generation}}`);

test("PageStore reads the new page where a number is used again", () => {
  const store = new PageStore();
  store.ensureDictionary([]);
  const slots = [4, 5, 6];
  for (let generation = 0; generation < 3; generation++) {
    const first = store.add(slots, (slot) => body(slot, generation));
    assert.equal(first, 0, "the number of the page is used again");
    for (const [i, slot] of slots.entries()) {
      assert.equal(
        rangeText(store.read(first + i)),
        rangeText(body(slot, generation)),
      );
    }
    assert.deepEqual(
      store.slots(first + 1),
      slots.map((slot, i) => ({ slot, address: first + i })),
    );
    // Half of the page may be dead before the rest should be moved.
    assert.deepEqual(slots.map((_, i) => store.remove(first + i)), [
      false,
      true,
      false,
    ]);
    assert.equal(store.objects, 0);
  }
});

test("PageStore takes a twentieth more than its pages while they change", () => {
  const store = new PageStore();
  store.ensureDictionary([]);
  const add = (number: number) =>
    store.add([number], () => wholeRange(randomBytes(8_000).toString("hex")));
  const pages = Array.from({ length: 1_000 }, (_, number) => add(number));
  store.reclaim();
  const before = store.allocatedBytes;
  for (let i = 0; i < 2_000; i++) {
    const number = i * 7_919 % pages.length;
    store.remove(pages[number] as number);
    pages[number] = add(number);
    store.reclaim();
  }
  const share = store.allocatedBytes / before;
  assert.ok(share < 1.05, `${share}`);
});

const SAMPLES = Array.from(
  { length: 40 },
  (_, index) => `{"name":"sample-${index}","labels":{"app":"web"}}`,
);

test("PageStore makes its dictionary once, of the first samples", () => {
  const expected = usableDictionary(Buffer.from(SAMPLES.join("")));
  const store = new PageStore();
  const before = store.allocatedBytes;
  for (const samples of [SAMPLES, ["others".repeat(100)]]) {
    store.ensureDictionary(samples.map(wholeRange));
    assert.equal(store.allocatedBytes - before, expected?.length ?? 0);
  }
});

test("PageStore reads with the dictionary with which it wrote", () => {
  const store = new PageStore();
  store.ensureDictionary(SAMPLES.map(wholeRange));
  const slots = SAMPLES.slice(0, 16).map((_, index) => index);
  const first = store.add(slots, (slot) => wholeRange(SAMPLES[slot]!));
  const other = store.add([0], () => wholeRange("another"));
  for (const slot of slots) {
    assert.equal(rangeText(store.read(first + slot)), SAMPLES[slot]);
    assert.equal(rangeText(store.read(other)), "another");
  }
});

const NO_UID = "00000000-0000-0000-0000-000000000000";
/** UID of an object of this number. */
const uidOf = (slot: number) =>
  `5eed0000-0000-4000-a000-${slot.toString(16).padStart(12, "0")}`;
/** Bodies with their UID where it is found, where it is not, and without it. */
const BODIES: readonly ((uid: string) => string)[] = [
  (uid) => `{"metadata":{"uid":"${uid}"},"spec":"${NO_UID}"}`,
  (uid) => `{"metadata":{"name":"${NO_UID}","uid":"${uid}"}}`,
  (uid) => `{"metadata":{"uid":"${uid}"},"spec":["${uid}","${uid}"]}`,
  (uid) => `{"metadata":{"uid":"${uid}"},"spec":"0000${NO_UID}0000"}`,
  () => `{"metadata":{"uid":"${NO_UID}"}}`,
  () => `{"spec":"${NO_UID}"}`,
  () => "{}",
  (uid) => uid,
];

test("PageStore reads the UIDs that its pages leave out", () => {
  const store = new PageStore((slot) =>
    slot === 3 ? undefined : Buffer.from(slot === 4 ? NO_UID : uidOf(slot))
  );
  const texts = BODIES.map((body, slot) => body(uidOf(slot)));
  const first = store.add(
    texts.map((_, slot) => slot),
    (slot) => wholeRange(texts[slot]!),
  );
  const other = store.add([0], () => wholeRange(texts[0]!));
  for (const [slot, text] of texts.entries()) {
    const copy = new BodyCopy();
    store.copy(first + slot, copy);
    assert.equal(rangeText(store.read(other)), texts[0]);
    assert.equal(rangeText(copy), text, "a copy of a page that is not open");
    for (let i = 0; i < 2; i++) {
      assert.equal(rangeText(store.read(first + slot)), text);
    }
    store.copy(first + slot, copy);
    assert.equal(rangeText(copy), text, "a copy of the open page");
  }
});

test("PageStore takes 18 bytes fewer an object for a UID that it leaves out", () => {
  const uids = Array.from(
    { length: 4_096 },
    () => Buffer.from(crypto.randomUUID()),
  );
  const pageBytes = (store: PageStore) => {
    for (let slot = 0; slot < uids.length; slot += 16) {
      store.add(
        Array.from({ length: 16 }, (_, i) => slot + i),
        (slot) => wholeRange(`{"metadata":{"uid":"${uids[slot]}"}}`),
      );
    }
    return store.allocatedBytes;
  };
  const saved = pageBytes(new PageStore()) -
    pageBytes(new PageStore((slot) => uids[slot]));
  assert.ok(saved / uids.length > 18, `${saved / uids.length}`);
});
