// SPDX-License-Identifier: GPL-2.0

//! From tree to text: the trigger in canonical form, without `hist:`. Parsing it gives an equal
//! tree.

use kernel::prelude::KVec;
use kernel::prelude::GFP_KERNEL;
use rhist::trigger::*;

type Result = core::result::Result<(), Error>;

/// An attribute, for sorting them by their place in the text.
#[derive(Clone, Copy)]
enum Attribute {
    Keys,
    Vals,
    Vars,
    Sort,
    Size(MapSize),
    Clock(Span),
    Word(&'static [u8]),
    Typed(Span),
    Actions,
    On,
    Quantiles,
    Unit,
    Number(&'static [u8], u64),
    Expire(Expire),
    Full(Full),
}

/// Prints the attributes in the order in which they were typed: C strips white space at both ends
/// of the whole text but not of each attribute, so the last one matters.
pub(crate) fn print(trigger: &Trigger, out: &mut KVec<u8>) -> Result {
    let mut attributes = KVec::new();
    let size = trigger.size.unwrap_or_default();
    for (typed, attribute) in [
        (trigger.keys.text, Attribute::Keys),
        (trigger.vals.text, Attribute::Vals),
        (trigger.vars.text, Attribute::Vars),
        (trigger.sort.text, Attribute::Sort),
        (trigger.size.map(|size| size.text), Attribute::Size(size)),
        (
            trigger.name,
            Attribute::Typed(trigger.name.unwrap_or_default()),
        ),
        (
            trigger.clock,
            Attribute::Clock(trigger.clock.unwrap_or_default()),
        ),
        (trigger.clauses.on.text, Attribute::On),
        (
            trigger.clauses.quantiles.as_ref().map(|clause| clause.text),
            Attribute::Quantiles,
        ),
        (
            trigger.clauses.unit.map(|clause| clause.text),
            Attribute::Unit,
        ),
        (
            trigger.clauses.buckets.map(|clause| clause.text),
            Attribute::Number(
                b"buckets",
                trigger.clauses.buckets.map_or(0, |it| it.value.into()),
            ),
        ),
        (
            trigger.clauses.limit.map(|clause| clause.text),
            Attribute::Number(b"limit", trigger.clauses.limit.map_or(0, |it| it.value)),
        ),
        (
            trigger.clauses.expire.map(|clause| clause.text),
            Attribute::Expire(
                trigger
                    .clauses
                    .expire
                    .map(|it| it.value)
                    .unwrap_or_default(),
            ),
        ),
        (
            trigger.clauses.full.map(|clause| clause.text),
            Attribute::Full(trigger.clauses.full.map(|it| it.value).unwrap_or_default()),
        ),
        (trigger.nohitcount, Attribute::Word(b"nohitcount")),
        (trigger.pause, Attribute::Word(b"pause")),
        (trigger.cont, Attribute::Word(b"cont")),
        (trigger.clear, Attribute::Word(b"clear")),
        (trigger.actions.text, Attribute::Actions),
    ] {
        if let Some(typed) = typed {
            attributes.push((typed.start, attribute), GFP_KERNEL)?;
        }
    }
    attributes.sort_unstable_by_key(|&(at, _)| at);

    let mut printer = Printer { trigger, out };
    // Nor must a name that starts with a blank come first. Only the last keys count, so print them
    // once more.
    if let Some((_, Attribute::Vars)) = attributes.first() {
        printer.attribute(Attribute::Keys)?;
        printer.put(b":")?;
    }
    for (index, &(_, attribute)) in attributes.iter().enumerate() {
        if index > 0 {
            printer.put(b":")?;
        }
        printer.attribute(attribute)?;
    }
    if let Some(filter) = trigger.filter {
        // The text before may end with the word "if", which would begin the filter if a blank
        // followed.
        printer.put(b"\n if ")?;
        printer.span(filter.text)?;
    }
    Ok(())
}

struct Printer<'a> {
    trigger: &'a Trigger,
    out: &'a mut KVec<u8>,
}

impl Printer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result {
        Ok(self.out.extend_from_slice(bytes, GFP_KERNEL)?)
    }

    fn span(&mut self, span: Span) -> Result {
        Ok(self
            .out
            .extend_from_slice(self.trigger.typed(span), GFP_KERNEL)?)
    }

    fn number(&mut self, number: u64) -> Result {
        if number >= 10 {
            self.number(number / 10)?;
        }
        self.put(&[b'0' + (number % 10) as u8])
    }

    /// Prints the items with `separator` between them, then the rest of a list that stops at an
    /// error.
    fn list<T>(
        &mut self,
        list: &ParsedList<T>,
        separator: &[u8],
        item: impl Fn(&mut Self, &T) -> Result,
    ) -> Result {
        for (index, it) in list.items().iter().enumerate() {
            if index > 0 {
                self.put(separator)?;
            }
            item(self, it)?;
        }
        if let Some(rest) = list.rest {
            if !list.items().is_empty() {
                self.put(separator)?;
            }
            self.span(rest)?;
        }
        Ok(())
    }

    fn attribute(&mut self, attribute: Attribute) -> Result {
        let trigger = self.trigger;
        match attribute {
            Attribute::Keys => {
                self.put(b"keys=")?;
                self.list(&trigger.keys, b",", Self::expr)
            }
            Attribute::Vals => {
                // C swallows the first hitcount, so that another one is a value.
                self.put(b"vals=hitcount")?;
                if trigger.vals.items().is_empty() {
                    return Ok(());
                }
                self.put(b",")?;
                self.list(&trigger.vals, b",", Self::expr)
            }
            Attribute::Vars => {
                self.list(&trigger.vars, b",", |printer, var| {
                    printer.span(var.name)?;
                    printer.put(b"=")?;
                    printer.expr(&var.expr)
                })?;
                match trigger.vars.items() {
                    // The assignment that made the token one of variables comes after the bad first
                    // item.
                    [] => self.put(b",x=1"),
                    _ => Ok(()),
                }
            }
            Attribute::Sort => {
                self.put(b"sort=")?;
                self.list(&trigger.sort, b",", |printer, key| match key.order {
                    Ok(Order::Ascending) => printer.span(key.name),
                    Ok(Order::Descending) => {
                        printer.span(key.name)?;
                        printer.put(b".descending")
                    }
                    Err(_) => printer.span(key.text),
                })
            }
            Attribute::Size(size) => {
                self.put(b"size=")?;
                self.number(1 << size.bits)?;
                match size.bits_max {
                    Some(bits_max) => {
                        self.put(b"..")?;
                        self.number(1 << bits_max)
                    }
                    None => Ok(()),
                }
            }
            Attribute::Typed(token) => self.span(token),
            Attribute::Clock(clock) => {
                self.put(if clock.is_empty() {
                    b"clock= "
                } else {
                    b"clock="
                })?;
                self.span(clock)
            }
            Attribute::Word(word) => self.put(word),
            Attribute::Actions => self.list(&trigger.actions, b":", Self::action),
            Attribute::On => {
                self.put(b"on(")?;
                self.list(&trigger.clauses.on, b",", Self::expr)?;
                self.put(b")")
            }
            Attribute::Quantiles => {
                let mut before: &[u8] = b"quantiles(";
                for quantile in trigger.clauses.quantiles.iter().flat_map(|it| &it.value) {
                    self.put(before)?;
                    self.put(quantile.to_string().as_bytes())?;
                    before = b",";
                }
                self.put(b")")
            }
            Attribute::Unit => {
                self.put(b"unit(")?;
                self.put(trigger.clauses.unit.map_or(&b""[..], |it| it.value.name()))?;
                self.put(b")")
            }
            Attribute::Number(word, number) => {
                self.put(word)?;
                self.put(b"(")?;
                self.number(number)?;
                self.put(b")")
            }
            Attribute::Expire(expire) => self.put(format!("expire({expire})").as_bytes()),
            Attribute::Full(full) => self.put(format!("full({full})").as_bytes()),
        }
    }

    fn expr(&mut self, expr: &Expr) -> Result {
        match expr {
            Expr::Literal { value, .. } => self.number(*value),
            Expr::Field(field) => {
                self.qualifier(field.qualifier)?;
                self.span(field.name)?;
                match field.modifier.map(|modifier| modifier.kind) {
                    Some(kind) => self.modifier(kind),
                    None => Ok(()),
                }
            }
            Expr::Reference(reference) => {
                self.qualifier(reference.qualifier)?;
                self.put(b"$")?;
                self.span(reference.name)
            }
            Expr::Parens {
                operand, modifier, ..
            } => {
                self.put(b"(")?;
                self.expr(operand)?;
                self.put(b")")?;
                match modifier {
                    Some(modifier) => self.modifier(modifier.kind),
                    None => Ok(()),
                }
            }
            Expr::Negation { operand, .. } => {
                // C skips the character in the place of the parenthesis. If that is the dot before
                // `sym-offset`, keep it.
                let dot = self
                    .trigger
                    .bytes(operand.text())
                    .starts_with(b"symXoffset");
                self.put(if dot { b"-." } else { b"-(" })?;
                let start = self.out.len();
                self.expr(operand)?;
                // A parenthesis must follow somewhere: it may have been behind a modifier, of which
                // only the beginning counts.
                if dot && !self.out[start..].contains(&b'(') {
                    self.put(b"(")?;
                }
                self.put(b")")
            }
            Expr::Binary {
                operator,
                left,
                right,
                ..
            } => {
                self.expr(left)?;
                self.put(match operator {
                    Operator::Plus => b"+",
                    Operator::Minus => b"-",
                    Operator::Times => b"*",
                    Operator::Over => b"/",
                })?;
                self.expr(right)
            }
            Expr::Stacktrace { text } | Expr::Bad { text, .. } => self.span(*text),
        }
    }

    fn qualifier(&mut self, qualifier: Option<Qualifier>) -> Result {
        let Some(Qualifier { system, event }) = qualifier else {
            return Ok(());
        };
        self.span(system)?;
        self.put(b".")?;
        self.span(event)?;
        self.put(b".")
    }

    fn modifier(&mut self, modifier: ModifierKind) -> Result {
        self.put(b".")?;
        self.put(modifier.word().as_bytes())?;
        match modifier {
            ModifierKind::Buckets(count) => {
                self.put(b"=")?;
                self.number(count as u64)
            }
            // In `on()`, a `=` would turn the token into an assignment.
            ModifierKind::Dist(ModifierKind::SCALE_DEFAULT) => Ok(()),
            ModifierKind::Exponential(scale) | ModifierKind::Dist(scale) => {
                self.put(b"=")?;
                self.number(scale.into())
            }
            _ => Ok(()),
        }
    }

    fn action(&mut self, action: &Action) -> Result {
        let act = match &action.act {
            Ok(act) => act,
            Err(_) => return self.span(action.text),
        };
        match action.handler {
            ActionHandler::OnMatch { system, event } => {
                self.put(b"onmatch(")?;
                self.span(system)?;
                self.put(b".")?;
                self.span(event)?;
            }
            ActionHandler::OnMax { var } => {
                self.put(b"onmax(")?;
                self.span(var)?;
            }
            ActionHandler::OnChange { var } => {
                self.put(b"onchange(")?;
                self.span(var)?;
            }
        }
        self.put(b").")?;
        let (name, event, params) = match act {
            Act::Save { name, params } => (*name, None, params.as_slice()),
            Act::Snapshot { name } => (*name, None, &[][..]),
            Act::Trace {
                name,
                event,
                params,
            } => (*name, (event != name).then_some(*event), params.as_slice()),
        };
        self.span(name)?;
        self.put(b"(")?;
        let pieces = event
            .into_iter()
            .chain(params.iter().map(|param| param.text));
        for (index, piece) in pieces.enumerate() {
            if index > 0 {
                self.put(b",")?;
            }
            self.span(piece)?;
        }
        self.put(b")")
    }
}
