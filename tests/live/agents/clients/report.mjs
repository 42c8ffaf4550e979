// The one line that each client for Node prints: the model's last words, or the status of a refusal.
export const prompt = "Write one.txt.";
export const commandTool = {
  name: "exec_command",
  description: "Run a command.",
  parameters: { type: "object", properties: { cmd: { type: "string" } } },
};

export async function report(ask) {
  const [format, scenario] = process.argv.slice(2);
  try {
    console.log(JSON.stringify({ said: await ask[format](scenario) }));
  } catch (refused) {
    const status = refused.status ?? refused.statusCode;
    const told = `${refused.name}: ${refused.message}`.slice(0, 300);
    console.log(JSON.stringify({ refused: status ?? told }));
  }
}
