import assert from "node:assert/strict";
import { test } from "node:test";
import { Quantity } from "@coracle/operator/client";
import { fc } from "../../support/property.ts";

/** Quantities with the form that a Kubernetes 1.32 server stores. */
const canonical: [given: string, stored: string][] = [
  ["0", "0"],
  ["0m", "0"],
  ["1", "1"],
  ["100m", "100m"],
  ["1000m", "1"],
  ["1500m", "1500m"],
  ["0.5", "500m"],
  ["1.5", "1500m"],
  ["2.0", "2"],
  ["1.500", "1.500"],
  ["1000", "1k"],
  ["1024", "1024"],
  ["12345", "12345"],
  ["1000000", "1M"],
  ["1024Mi", "1Gi"],
  ["1536Mi", "1536Mi"],
  ["1.5Gi", "1536Mi"],
  ["0.5Gi", "512Mi"],
  ["512Mi", "512Mi"],
  ["1025Mi", "1025Mi"],
  ["1Ki", "1Ki"],
  ["0.5Ki", "512"],
  ["1e3", "1e3"],
  ["1E6", "1E6"],
  ["12e6", "12e6"],
  ["100e3", "100e3"],
  ["1e4", "10e3"],
  ["1G", "1G"],
  ["1000G", "1T"],
  ["0.0001", "100u"],
  ["1n", "1n"],
  ["0.1n", "1n"],
  ["-1", "-1"],
  ["-0.5", "-500m"],
  [".5", "500m"],
  ["5.", "5."],
];

for (const [given, stored] of canonical) {
  test(`Quantity formats ${given} as ${stored}`, () => {
    assert.equal(Quantity.parse(given).toString(), stored);
  });
}

for (
  const text of ["", " ", "x", "1x", "1 Gi", "--1", "1e", "1.2.3", "Mi", "."]
) {
  test(`Quantity rejects ${JSON.stringify(text)}`, () => {
    assert.throws(() => Quantity.parse(text), SyntaxError);
    assert.equal(Quantity.is(text), false);
  });
}

test("Quantity rejects endless numbers immediately", () => {
  assert.throws(() => Quantity.parse("1e999999999"), SyntaxError);
  assert.throws(() => Quantity.parse("9".repeat(100_000)), SyntaxError);
});

test("Quantity of thousands of the largest unit keeps that unit", () => {
  assert.equal(Quantity.parse("3000E").toString(), "3000E");
  assert.equal(Quantity.parse("3000000e18").toString(), "3e24");
});

test("Quantity rounds up to thousandths", () => {
  assert.equal(Quantity.parse("0.0001").roundUpToMilli().toString(), "1m");
  assert.equal(Quantity.parse("1.0001").roundUpToMilli().toString(), "1001m");
  assert.equal(Quantity.parse("1Gi").roundUpToMilli().toString(), "1Gi");
});

test("Quantity formats a string that parses to the same amount", () => {
  const suffixes = fc.constantFrom(
    ..."n u m k M G T P E Ki Mi Gi Ti Pi Ei e3 e-3 e15".split(" "),
    "",
  );
  fc.assert(
    fc.property(fc.nat(9_999_999), fc.nat(999), suffixes, (a, b, unit) => {
      const read = Quantity.parse(`${a}.${b}${unit}`);
      const again = Quantity.parse(read.toString());
      assert.ok(again.equals(read), `${read} differs from ${again}`);
      // A binary amount without a suffix is read as a decimal one.
      if (!unit.endsWith("i")) assert.equal(again.toString(), read.toString());
      assert.equal(`${Quantity.parse(again.toString())}`, again.toString());
    }),
  );
});

test("Quantity writes binary amounts without a suffix as Go's Quantity does", () => {
  assert.equal(Quantity.parse("5030312.5Ki").toString(), "5151040000");
  assert.equal(Quantity.parse("5151040000").toString(), "5151040k");
});

test("Quantity.plus has the format of the first amount that is not zero, as in Go", () => {
  const sum = (...texts: string[]) =>
    String(
      texts.map((text) => Quantity.parse(text))
        .reduce((total, one) => total.plus(one)),
    );
  assert.equal(sum("0", "1Gi", "1Gi"), "2Gi");
  assert.equal(sum("1Gi", "0"), "1Gi");
  assert.equal(sum("1", "1Gi"), "1073741825");
  assert.equal(sum("0", "1500m", "500m"), "2");
  assert.equal(sum("0", "1e3"), "1e3");
});
