import assert from "node:assert/strict";
import { test } from "node:test";
import { NameTable } from "../../../../core/cache/store/name_table.ts";
import { ObjectTable } from "../../../../core/cache/store/object_table.ts";
import { rangeText, wholeRange } from "../../../../core/json/byte_range.ts";
import { EventScanner } from "../../../../core/json/event_scanner.ts";

const scanner = new EventScanner();

function header(metadata: object) {
  return scanner.scanObject(wholeRange(JSON.stringify({ metadata })));
}

/** Adds a key, with a state, which marks a slot as used. */
function add(slots: ObjectTable, metadata: object): number {
  const lookup = slots.lookup(header(metadata));
  assert.equal(lookup.slot, -1);
  const slot = slots.add(lookup);
  slots.page(slot).state[slot & 4095] = 1;
  return slot;
}

test("ObjectTable stores UIDs and versions of any form", () => {
  const slots = new ObjectTable();
  const slot = add(slots, { name: "web" });
  for (
    const uid of [
      "c29eca6a-3e09-435e-b099-7088a1941311",
      "C29ECA6A-3E09-435E-B099-7088A1941311",
      "c29eca6a+3e09-435e-b099-7088a1941311",
      "00000000-0000-0000-0000-000000000000",
      "not a uid",
      "",
    ]
  ) {
    const read = header({ name: "web", uid });
    slots.setUid(slot, read);
    assert.equal(slots.uid(slot), uid);
    assert.ok(slots.hasUid(slot, read));
    assert.ok(!slots.hasUid(slot, header({ name: "web", uid: "other" })));
    for (let at = 0; at < uid.length; at++) {
      if (uid[at] === "-" || uid[at] === "+") continue;
      const digit = uid[at] === "1" ? "2" : "1";
      const other = uid.slice(0, at) + digit + uid.slice(at + 1);
      const near = header({ name: "web", uid: other });
      assert.ok(!slots.hasUid(slot, near), `${uid} is not ${other}`);
    }
  }
  const versions = [
    "",
    "0",
    "7",
    "12",
    "999999999999999",
    "1000000000000000",
    "9007199254740992",
    "9007199254740993",
    "18446744073709551616",
  ];
  versions.forEach((stored, i) => {
    slots.setVersion(slot, header({ name: "web", resourceVersion: stored }));
    assert.equal(slots.version(slot), stored);
    versions.forEach((other, k) => {
      const order = slots.compareVersion(
        slot,
        header({ name: "web", resourceVersion: other }),
      );
      assert.equal(Math.sign(order), Math.sign(i - k), `${stored} ${other}`);
    });
  });
  slots.setVersion(slot, header({ name: "web", resourceVersion: "007" }));
  assert.equal(slots.version(slot), "007");
});

test("ObjectTable finds a key as text, as bytes and with escapes", () => {
  const slots = new ObjectTable();
  const keys = [
    { name: "web", namespace: "tëam" },
    { name: "wéb", namespace: "team" },
    { name: 'w"b', namespace: "te\\am" },
    { name: "web" },
    { name: "a", namespace: "aweb" },
    { name: "webteam".repeat(60), namespace: "team".repeat(60) },
  ];
  const added = keys.map((key) => add(slots, key));
  const escaped = (metadata: object) =>
    JSON.stringify({ metadata }).replaceAll("b", "\\u0062")
      .replaceAll("am", "\\u0061m");
  keys.forEach((key, i) => {
    assert.equal(slots.find(key), added[i], "by text");
    assert.equal(slots.find(header(key)), added[i], "by bytes");
    const read = scanner.scanObject(wholeRange(escaped(key)));
    assert.equal(slots.find(read), added[i], "by bytes with escapes");
    assert.deepEqual(slots.key(added[i] as number), key);
  });
});

test("ObjectTable distinguishes namespaces and removes empty ones", () => {
  const slots = new ObjectTable();
  for (let i = 0; i < 70_000; i++) {
    const slot = add(slots, { name: "web", namespace: `ns-${i}` });
    slots.remove(slot);
  }
  const one = add(slots, { name: "web", namespace: "a" });
  const other = add(slots, { name: "web" });
  assert.deepEqual(slots.key(one), { namespace: "a", name: "web" });
  assert.deepEqual(slots.key(other), { name: "web" });
  assert.deepEqual([...slots.slots("")], [other]);
  assert.equal(slots.size, 2);
});

test("ObjectTable takes about 64 bytes per object and reclaims names", () => {
  const slots = new ObjectTable();
  const name = (i: number, life: number) =>
    `cache-us-${(i >> 3).toString(36)}bf89-${life}x${i.toString(36)}`;
  const count = 20_480;
  for (let i = 0; i < count; i++) {
    add(slots, { name: name(i, 0), namespace: `team-${i % 100}` });
  }
  assert.ok(slots.allocatedBytes <= 72 * count, `${slots.allocatedBytes}`);
  const full = slots.allocatedBytes;
  for (let life = 1; life <= 3; life++) {
    for (let i = 0; i < count; i++) {
      const key = { name: name(i, life - 1), namespace: `team-${i % 100}` };
      const slot = slots.find(key);
      assert.deepEqual(slots.key(slot), {
        namespace: key.namespace,
        name: key.name,
      });
      slots.remove(slot);
      add(slots, { name: name(i, life), namespace: `team-${i % 100}` });
    }
  }
  assert.ok(slots.allocatedBytes <= 1.6 * full, `${slots.allocatedBytes}`);
});

test("NameTable shares prefixes of neighbours", () => {
  const names = new NameTable();
  const texts = Array.from(
    { length: 10_000 },
    (_, i) => `app-${i >> 3}-67644bbf89-${i.toString(36).padStart(5, "x")}`,
  );
  texts.push("", "x", "é€😀".repeat(300));
  const addresses = texts.map((text) => names.add(wholeRange(text)));
  addresses.forEach((address, i) => {
    const text = texts[i] ?? "";
    assert.equal(rangeText(names.read(address)), text);
    assert.ok(names.equals(address, wholeRange(text)));
    assert.ok(!names.equals(address, wholeRange(`${text}x`)));
    if (text !== "") {
      assert.ok(!names.equals(address, wholeRange(`${text.slice(0, -1)}?`)));
    }
  });
  assert.ok(names.allocatedBytes < 20 * texts.length);
  assert.throws(() => names.add(wholeRange("x".repeat(5000))), RangeError);
});
