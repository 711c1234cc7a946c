import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { wholeRange } from "../../../core/json/byte_range.ts";
import { JsonCursor } from "../../../core/json/json_cursor.ts";
import { KeyGuesser, KeyTable } from "../../../core/json/event_scanner.ts";

const KEYS = ["a", "b", "ab", "abc", "abd", "é"];
const NAMES = KEYS.slice(0, 4);

/** Keys with their fields, and whether they were expected. */
function read(guesser: KeyGuesser, text: string): [string, number, boolean][] {
  const cursor = new JsonCursor("an object");
  cursor.reset(wholeRange(text));
  cursor.peek();
  guesser.begin();
  const keys: [string, number, boolean][] = [];
  for (
    let more = cursor.enterObject(guesser.guess);
    more;
    more = cursor.nextMember(guesser.guess)
  ) {
    const name = guesser.read(cursor);
    keys.push([cursor.stringText(), name, cursor.wasExpected]);
    cursor.skipValue();
  }
  cursor.finish();
  return keys;
}

test("KeyGuesser finds the key of each member, whatever the guess", () => {
  const guesser = new KeyGuesser(
    new KeyTable(NAMES, (key) => NAMES.indexOf(key)),
  );
  const written = fc.constantFrom(...KEYS).chain((key) =>
    fc.constantFrom(
      `"${key}":1`,
      `"${key}" : 1 `,
      `"${key.replace("b", "\\u0062")}":"${key}"`,
    ).map((text) => ({ key, text }))
  );
  fc.assert(
    fc.property(fc.array(written, { maxLength: 8 }), (members) => {
      const text = `{${members.map(({ text }) => text).join()}}`;
      assert.deepEqual(
        read(guesser, text).map(([key, name]) => [key, name]),
        members.map(({ key }) => [key, NAMES.indexOf(key)]),
      );
    }),
  );
});

test("KeyGuesser predicts the key that followed last time", () => {
  const guesser = new KeyGuesser(
    new KeyTable(NAMES, (key) => NAMES.indexOf(key)),
  );
  const expected = (text: string) =>
    read(guesser, text).map(([, , wasExpected]) => wasExpected);
  const text = '{"ab":1,"abc":2,"b":3}';
  assert.deepEqual(expected(text), [false, false, false]);
  assert.deepEqual(expected(text), [true, true, true]);
  assert.deepEqual(expected('{"ab":1,"b":3}'), [true, false]);
  assert.deepEqual(expected('{"ab":1,"b":3}'), [true, true]);
  assert.deepEqual(expected('{"ab":1,"abd":3}'), [true, false]);
  assert.deepEqual(expected('{"ab":1,"abd":3}'), [true, false], "not known");
});
