import { runMain } from '@rollcall/platform/process/main.ts';
import { registryProcess } from './wiring/service.ts';

runMain(registryProcess);
