// Keeps one comment with a plan, of routing or of access, and one label of its kind on the pull request.
// COMMENT is the path of the text, whose first line names the plan and the label.
module.exports = async ({ github, context }) => {
  const body = require('fs').readFileSync(process.env.COMMENT, 'utf8')
  const [, marker, access, label] = /^(<!-- tollgate-(access-)?plan) label=(\S+) -->/.exec(body)
  const kind = access ? 'access:' : 'routing:'
  const place = { ...context.repo, issue_number: context.issue.number }
  const { issues } = github.rest
  const comments = await github.paginate(issues.listComments, place)
  const ours = comments.find(each => each.user.type === 'Bot' && each.body.startsWith(marker))
  if (ours) await issues.updateComment({ ...context.repo, comment_id: ours.id, body })
  else if (label !== 'none') await issues.createComment({ ...place, body })
  const labels = await github.paginate(issues.listLabelsOnIssue, place)
  for (const { name } of labels)
    if (name.startsWith(kind) && name !== label)
      await issues.removeLabel({ ...place, name })
  if (label !== 'none') await issues.addLabels({ ...place, labels: [label] })
}
