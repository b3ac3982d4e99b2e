import { runMain } from '@rollcall/platform/process/main.ts';
import { communicationProcess } from './service.ts';

runMain(communicationProcess);
