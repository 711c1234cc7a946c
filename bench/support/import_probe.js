/**
 * Imports one module and prints time and memory as one line of JSON:
 * `import_probe.js MODULE`. It is plain JavaScript, since a type stripper would
 * be measured otherwise.
 *
 * @module
 */
import process from "node:process";

const cpu = process.cpuUsage();
const start = performance.now();
const names = Object.keys(await import(process.argv[2]));
const wall = performance.now() - start;
const { user, system } = process.cpuUsage(cpu);
process.stdout.write(`${
  JSON.stringify({
    names: names.length,
    measures: [
      { unit: "ms CPU/import", value: (user + system) / 1000 },
      { unit: "ms/import", value: wall },
      { unit: "MiB RSS", value: process.memoryUsage.rss() / 1024 ** 2 },
    ],
  })
}\n`);
process.exit(0);
