import { runMain } from '@rollcall/platform/process/main.ts';
import { federationProcess } from './service.ts';

runMain(federationProcess);
