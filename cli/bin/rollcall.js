#!/usr/bin/env node
// JavaScript that any Node can read, because the rest is TypeScript, which an older one stops at with a syntax error.
const REQUIRED = 26;
const { node } = process.versions;

if (Number(node.split('.')[0]) < REQUIRED) {
  process.stderr.write(
    `rollcall: Node.js ${REQUIRED} or newer is needed, and this is ${node}. ` +
      'In the repository, `npm exec rollcall -- <command>` runs it with the right one.\n',
  );
  process.exitCode = 1;
} else {
  await import('../src/main.ts');
}
