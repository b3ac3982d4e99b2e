import { runMain } from '@rollcall/platform/process/main.ts';
import { operatorProcess } from './operator.ts';

runMain(operatorProcess);
