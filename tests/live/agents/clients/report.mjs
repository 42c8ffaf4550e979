// The line that each client for Node prints: by scenario, the last words or the status of a refusal.
export const prompt = "Write one.txt.";
export const commandTool = {
  name: "exec_command",
  description: "Run a command.",
  parameters: { type: "object", properties: { cmd: { type: "string" } } },
};

export async function report(ask) {
  const [format, ...scenarios] = process.argv.slice(2);
  const shown = {};
  for (const scenario of scenarios)
    shown[scenario] = await ask[format](scenario).catch(
      (refused) =>
        refused.status ?? refused.statusCode ?? `${refused.name}: ${refused.message}`.slice(0, 300),
    );
  console.log(JSON.stringify(shown));
}
