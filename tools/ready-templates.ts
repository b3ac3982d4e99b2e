// Writes the HTML of communication's ready templates, which their MJML compiles to.
import { writeFile } from 'node:fs/promises';
import { compiledFileOf, compileReadyTemplate, readyTemplates } from '@rollcall/communication/ready-templates.ts';

for (const name of readyTemplates) await writeFile(compiledFileOf(name), await compileReadyTemplate(name));
