import type { CommandTerminal, Terminal } from "./command.ts";

/** C0 and C1 control characters, which can change what a terminal shows. */
// deno-lint-ignore no-control-regex -- it finds them
const CONTROL_REGEXP = /[\x00-\x1f\x7f-\x9f]/g;

/**
 * Text without control characters, save line feeds and tabs: the others are
 * written as in JSON, such as `\u001b`, so that what users and servers wrote
 * cannot hide or change other output.
 */
export function printable(text: string): string {
  return text.replaceAll(
    CONTROL_REGEXP,
    (character) =>
      character === "\n" || character === "\t" ? character : escaped(character),
  );
}

/** Text that stays on its line: line feeds are escaped as well. */
export function printableLine(text: string): string {
  return text.replaceAll(CONTROL_REGEXP, escaped);
}

function escaped(character: string): string {
  if (character === "\n") return "\\n";
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Terminal that shows only {@linkcode printable} text, save what is drawn. */
export function printableTerminal(terminal: Terminal): CommandTerminal {
  return {
    out: (text) => terminal.out(printable(text)),
    say: (text) => terminal.say(printable(text)),
    draw: (text) => terminal.say(text),
    colors: terminal.colors,
    interrupts: () => terminal.interrupts(),
  };
}
