//! What can be wrong with a line from a plugin: one kind for each way, with the byte at which it shows.

use std::fmt;

/// A line that breaks the plugin for the rest of the invocation (TRN-14 to TRN-21).
///
/// It says where and how the line is wrong and holds none of its bytes, so its text may be printed, logged and stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InvalidMessage {
    /// Offset in bytes from the start of the line, at which the line turns wrong. For something that is absent it is
    /// the start of the object that lacks it.
    pub at: usize,
    /// The way in which it is wrong.
    pub why: Why,
}

impl InvalidMessage {
    pub(crate) fn new(at: usize, why: Why) -> Self {
        InvalidMessage { at, why }
    }
}

impl fmt::Display for InvalidMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {} ({})", self.at, self.why, self.why.rule())
    }
}

impl std::error::Error for InvalidMessage {}

/// Each way for a line to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Why {
    /// More than 1 MiB came without a line feed.
    #[error("the line is longer than 1 MiB")]
    TooLong,
    /// The bytes are not UTF-8; nothing is mended or replaced.
    #[error("not UTF-8")]
    NotUtf8,
    /// The line starts with a UTF-8 byte order mark.
    #[error("starts with a byte order mark")]
    ByteOrderMark,
    /// The line is empty or all white space.
    #[error("the line is blank")]
    Blank,
    /// The line is an array: JSON-RPC batches are not part of the protocol.
    #[error("an array (a batch) instead of one object")]
    Batch,
    /// The line starts with something else than an object: text, a string, a number, a literal.
    #[error("does not start with a JSON object")]
    NotAnObject,
    /// Something other than white space follows the object: a second object, a comma, a NUL.
    #[error("something follows the object")]
    TrailingBytes,
    /// The line ends inside the object.
    #[error("the line ends inside the object")]
    Unfinished,
    /// Where a value must start stands something that starts none.
    #[error("not JSON: expected a value")]
    ExpectedValue,
    /// Where a member's name must start stands something else, after a trailing comma for instance.
    #[error("not JSON: expected a member name")]
    ExpectedName,
    /// No colon after a member's name.
    #[error("not JSON: expected a colon")]
    ExpectedColon,
    /// After a member of an object comes neither a comma nor the closing brace.
    #[error("not JSON: expected a comma or the end of the object")]
    ExpectedCommaOrBrace,
    /// After an element of an array comes neither a comma nor the closing bracket.
    #[error("not JSON: expected a comma or the end of the array")]
    ExpectedCommaOrBracket,
    /// A word that begins like `true`, `false` or `null` and is none of them.
    #[error("not JSON: misspelt literal")]
    BadLiteral,
    /// A number that the grammar forbids: leading zero, bare sign, no digit after point or exponent.
    #[error("not JSON: malformed number")]
    BadNumber,
    /// A backslash followed by something that is no escape.
    #[error("not JSON: malformed escape")]
    BadEscape,
    /// A raw character below U+0020 inside a string.
    #[error("not JSON: control character inside a string")]
    ControlCharacter,
    /// An escape for one half of a surrogate pair without the other half: such a string has no UTF-8 form.
    #[error("half a surrogate pair")]
    LoneSurrogate,
    /// The same member name twice in one object, compared after escapes are decoded.
    #[error("member name used twice in one object")]
    DuplicateName,
    /// Objects and arrays nested more than 64 deep, the outermost object counted.
    #[error("nested deeper than 64")]
    TooDeep,
    /// No `jsonrpc` member.
    #[error("no \"jsonrpc\" member")]
    MissingVersion,
    /// `jsonrpc` is not the string `2.0`.
    #[error("\"jsonrpc\" is not \"2.0\"")]
    WrongVersion,
    /// A member that the envelope does not know.
    #[error("unknown envelope member")]
    UnknownMember,
    /// Both `id` and `method`: a request, and mu serves none.
    #[error("a request to mu, which serves no method")]
    Request,
    /// Neither `id` nor `method`: no reply and no notification.
    #[error("neither a reply nor a notification")]
    NoIdNoMethod,
    /// `id` is not a number.
    #[error("\"id\" is not a number")]
    IdNotNumber,
    /// `id` is zero or negative, has a fraction or exponent, or exceeds 2^53-1: mu never sent it.
    #[error("\"id\" is not an integer from 1 to 2^53-1")]
    IdOutOfRange,
    /// A reply with neither `result` nor `error`; a method with nothing to say answers `null`.
    #[error("neither \"result\" nor \"error\"")]
    NoOutcome,
    /// A reply with both `result` and `error`.
    #[error("both \"result\" and \"error\"")]
    TwoOutcomes,
    /// `error` is not an object.
    #[error("\"error\" is not an object")]
    ErrorNotObject,
    /// A reply with `params`.
    #[error("\"params\" in a reply")]
    ParamsInReply,
    /// A notification with `result` or `error`.
    #[error("\"result\" or \"error\" in a notification")]
    OutcomeInNotification,
    /// `method` is not a string.
    #[error("\"method\" is not a string")]
    MethodNotString,
    /// A notification that is neither `watch/settled` nor `watch/restarted`.
    #[error("unknown notification")]
    UnknownNotification,
    /// A notification without `params`.
    #[error("notification without \"params\"")]
    MissingParams,
    /// `params` is not an object.
    #[error("\"params\" is not an object")]
    ParamsNotObject,
}

impl Why {
    /// The rule of the protocol that the line breaks.
    pub fn rule(self) -> &'static str {
        match self {
            Why::TooLong => "TRN-04",
            Why::NotUtf8 => "TRN-05",
            Why::Batch | Why::MissingVersion | Why::WrongVersion => "TRN-01",
            Why::TrailingBytes => "TRN-02",
            Why::UnknownMember | Why::ParamsInReply | Why::OutcomeInNotification => "TRN-15",
            Why::IdNotNumber | Why::IdOutOfRange => "TRN-16",
            Why::Request => "TRN-17",
            Why::UnknownNotification => "TRN-21",
            Why::NoOutcome | Why::TwoOutcomes => "TRN-10",
            Why::ErrorNotObject => "TRN-11",
            Why::ByteOrderMark
            | Why::Blank
            | Why::NotAnObject
            | Why::Unfinished
            | Why::ExpectedValue
            | Why::ExpectedName
            | Why::ExpectedColon
            | Why::ExpectedCommaOrBrace
            | Why::ExpectedCommaOrBracket
            | Why::BadLiteral
            | Why::BadNumber
            | Why::BadEscape
            | Why::ControlCharacter
            | Why::LoneSurrogate
            | Why::DuplicateName
            | Why::TooDeep => "TRN-14",
            Why::NoIdNoMethod | Why::MethodNotString | Why::MissingParams | Why::ParamsNotObject => "TRN-15",
        }
    }
}
