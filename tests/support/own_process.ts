/**
 * Which test files have a process of their own on Node and Deno.
 *
 * @module
 */

/**
 * What a test file does that others in its process would notice: it changes the
 * environment or a global, handles signals, ends the process or measures it.
 */
const NEEDS_OWN_PROCESS = new RegExp(
  [
    /process\.(?:env(?:\.\w+|\[[^\]]+\]) = |chdir|exit\(|kill|once|on\()/,
    /process\.(?:emit|memoryUsage)|delete process\.env|Object\.assign\(process\.env/,
    /globalThis(?:\.\w+|\[[^\]]+\]) = |mock\.|FinalizationRegistry|registerHooks/,
    /failFirstImports|setFlagsFromString|global(?:This)?\.gc\b/,
    /getActiveResourcesInfo|support\/(?:growth|command_run)/,
  ].map(({ source }) => source).join("|"),
);

/** Whether a test file with this text does not share its process. */
export function needsOwnProcess(text: string): boolean {
  return NEEDS_OWN_PROCESS.test(text);
}
