import { writeFile } from 'node:fs/promises';
import { serverErrors } from '../platform/src/http/errors.ts';
import { type ErrorCode, errorCatalogue } from '../services/registry/src/domain/errors.ts';
import { answers } from '../services/registry/src/routes/errors.ts';

const file = new URL('../docs/errors.md', import.meta.url);

/** docs/errors.md, from the error catalogues and their HTTP answers. */
export function generateErrorDocs(): string {
  const rows = (Object.keys(errorCatalogue) as ErrorCode[]).map((code) => {
    const { status, error } = answers[code];
    return `| ${status} | ${error} | ${errorCatalogue[code]} | ${code} |`;
  });
  const general = Object.entries(serverErrors).map(
    ([code, { status, error, when }]) => `| ${status} | ${error} | ${when} | ${code} |`,
  );
  return `# Errors

Generated from the error catalogues by tools/error-docs.ts (\`npm run generate\`). Do not edit.

Every error answer of the API is \`{"error": <type>, "message": <what is wrong with this request>}\`. A heartbeat for a service that is
not registered is answered with 400 instead of 404, as the contract has it; 503 comes with Retry-After, 405 with Allow. OPTIONS is
answered with 204 and Allow, HEAD like GET without the body.

## Registry

| status | \`error\` | when | code in the source |
| --- | --- | --- | --- |
${rows.join('\n')}

## Every server

| status | \`error\` | when | code in the source |
| --- | --- | --- | --- |
${general.join('\n')}
`;
}

if (import.meta.main) await writeFile(file, generateErrorDocs());
