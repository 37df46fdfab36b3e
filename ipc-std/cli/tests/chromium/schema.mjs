// Checks files of speedscope against its schema: schema.mjs TOOLS FILE... TOOLS is the folder of the npm packages ajv and
// speedscope.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [tools, ...files] = process.argv.slice(2);
const Ajv = createRequire(join(tools, "/"))("ajv");
const json = (file) => JSON.parse(readFileSync(file, "utf8"));
const validate = new Ajv({ allErrors: true }).compile(json(join(tools, "speedscope/dist/release/file-format-schema.json")));
for (const file of files) {
    if (!validate(json(file))) {
        console.error(file, validate.errors.slice(0, 3));
        process.exitCode = 1;
    }
}
