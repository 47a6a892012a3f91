// SPDX-License-Identifier: GPL-2.0

//! Compares trees by their meaning, regardless of positions in the text.

use rhist::trigger::*;

/// A text that is the same for two trees if and only if they mean the same.
pub(crate) fn shape(trigger: &Trigger) -> String {
    let show = |piece: Option<Span>| piece.map(|piece| trigger.bytes(piece).to_vec());
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        list(&trigger.actions, |item| action(trigger, item)),
        list(&trigger.vals, |item| expr(trigger, item)),
        list(&trigger.vars, |var| (
            trigger.bytes(var.name).to_vec(),
            expr(trigger, &var.expr)
        )),
        list(&trigger.keys, |item| expr(trigger, item)),
        list(&trigger.sort, |key| (
            trigger.bytes(key.name).to_vec(),
            key.order.map_err(plain),
            key.number
                .map(|(text, order)| (trigger.bytes(text).to_vec(), order)),
        )),
        trigger.size.map(|size| (size.bits, size.bits_max)),
        [show(trigger.name), show(trigger.clock)],
        [
            trigger.nohitcount,
            trigger.pause,
            trigger.cont,
            trigger.clear
        ]
        .map(|word| word.is_some()),
        show(trigger.filter.map(|filter| filter.text)),
        list(&trigger.clauses.on, |item| expr(trigger, item)),
        (
            trigger
                .clauses
                .quantiles
                .as_ref()
                .map(|it| it.value.to_vec()),
            trigger.clauses.unit.map(|it| it.value),
            trigger.clauses.buckets.map(|it| it.value),
            trigger.clauses.limit.map(|it| it.value),
            trigger.clauses.expire.map(|it| it.value),
            trigger.clauses.full.map(|it| it.value),
        ),
    )
}

/// An error without its place.
fn plain(error: Error) -> (Option<ErrorText>, kernel::error::Error) {
    (error.text, error.errno)
}

fn list<'a, T, U: std::fmt::Debug>(list: &'a ParsedList<T>, item: impl Fn(&'a T) -> U) -> String {
    let items: Vec<_> = list.items().iter().map(item).collect();
    format!("{items:?} {:?}", list.error().map(plain))
}

fn action(trigger: &Trigger, action: &Action) -> String {
    let show = |piece: Span| trigger.bytes(piece).to_vec();
    let handler = match action.handler {
        ActionHandler::OnMatch { system, event } => ("match", show(system), show(event)),
        ActionHandler::OnMax { var } => ("max", show(var), Vec::new()),
        ActionHandler::OnChange { var } => ("change", show(var), Vec::new()),
    };
    let params = |params: &[Param]| -> Vec<_> {
        (params.iter())
            .map(|param| {
                let qualifier = (param.qualifier)
                    .map(|qualifier| qualifier.map(|it| (show(it.system), show(it.event))));
                let atom = expr(trigger, &param.atom);
                (qualifier.map_err(plain), show(param.rest), atom)
            })
            .collect()
    };
    let act = match action.act.as_ref() {
        Ok(Act::Save { name, params: list }) => {
            format!("save {:?} {:?}", show(*name), params(list))
        }
        Ok(Act::Snapshot { name }) => format!("snapshot {:?}", show(*name)),
        Ok(Act::Trace {
            name,
            event,
            params: list,
        }) => format!(
            "trace {:?} {:?} {:?}",
            show(*name),
            show(*event),
            params(list)
        ),
        Err(error) => format!("{:?}", plain(*error)),
    };
    format!("{handler:?} {act}")
}

fn expr(trigger: &Trigger, it: &Expr) -> String {
    let show = |piece: Span| String::from_utf8_lossy(trigger.bytes(piece)).into_owned();
    let event = |qualifier: Option<Qualifier>| {
        qualifier.map(|qualifier| (show(qualifier.system), show(qualifier.event)))
    };
    match it {
        Expr::Literal { value, .. } => value.to_string(),
        Expr::Field(field) => {
            let kind = field.modifier.map(|modifier| modifier.kind);
            format!(
                "{:?} {:?} {kind:?}",
                event(field.qualifier),
                show(field.name)
            )
        }
        Expr::Reference(it) => format!("{:?} ${:?}", event(it.qualifier), show(it.name)),
        Expr::Stacktrace { .. } => "stacktrace".into(),
        Expr::Parens {
            operand, modifier, ..
        } => format!(
            "parens {} {:?}",
            expr(trigger, operand),
            modifier.map(|modifier| modifier.kind)
        ),
        Expr::Negation { operand, .. } => format!("-({})", expr(trigger, operand)),
        Expr::Binary {
            operator,
            left,
            right,
            ..
        } => format!(
            "({} {operator:?} {})",
            expr(trigger, left),
            expr(trigger, right)
        ),
        Expr::Bad { error, .. } => format!("{:?}", plain(*error)),
    }
}
