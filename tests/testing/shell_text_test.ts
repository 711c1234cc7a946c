import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { shellText } from "../../dev/testing/shell_text.ts";

test("shellText gives one word with which a shell names the same text", () => {
  const texts = [
    "",
    "plain/a-b_c.ts",
    "a b",
    "~/x",
    "it's",
    "''",
    '"$HOME" `id` \\',
    "*?[a]{b,c}",
    "a\nb\t",
    "#x;&|<>()!",
    "ü",
  ];
  const words = texts.map(shellText).join(" ");
  const printed = execFileSync("sh", ["-c", `printf '%s\\0' ${words}`]);
  assert.deepEqual(printed.toString().split("\0").slice(0, -1), texts);
  assert.equal(shellText("plain/a-b_c.ts"), "plain/a-b_c.ts");
});
