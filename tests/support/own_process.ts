/**
 * Which test files have a process of their own on Node and Deno.
 *
 * @module
 */

/**
 * What a test file does that others in its process would notice: it changes a
 * global, handles signals, ends the process or measures it.
 */
const NEEDS_OWN_PROCESS = new RegExp(
  [
    /process\.(?:chdir|exit\(|kill|once|on\()/,
    /process\.(?:emit|memoryUsage)|Object\.assign\(process\.env/,
    /globalThis(?:\.\w+|\[[^\]]+\]) = |mock\.|FinalizationRegistry|registerHooks/,
    /failFirstImports|setFlagsFromString|global(?:This)?\.gc\b/,
    /getActiveResourcesInfo|support\/(?:growth|command_run)/,
  ].map(({ source }) => source).join("|"),
);

const CHANGES_ENVIRONMENT =
  /process\.env(?:\.\w+|\[[^\]]+\]) = |delete process\.env/;
/** The tests of a process run one after another. */
const RESTORES_ENVIRONMENT = /finally \{[^}]*process\.env/;

/** Whether a test file with this text does not share its process. */
export function needsOwnProcess(text: string): boolean {
  return NEEDS_OWN_PROCESS.test(text) ||
    (CHANGES_ENVIRONMENT.test(text) && !RESTORES_ENVIRONMENT.test(text));
}
